"""Shapes, options and layers that the backbones refuse, each with the words that say so."""

from functools import partial

import torch

from cmixup.backbone import Backbone, resolve_layer
from cmixup.networks.fcn3 import FCN3
from cmixup.networks.resnet import ResNet
from models.conv_maml import ConvMAML
from models.deepdta import DeepDTA
from models.lstnet import LSTNet
from models.r2plus1d_18 import R2Plus1D18
from models.realmlp import RealMLP
from models.tabm import TabM
from tests.refused import Bad, bad, refused

VIDEO, SMALLEST = (3, 4, 16, 16), 63 * 17 + 26 * 24  # the second: of a drug of 17 and a protein of 24 symbols
BAD: Bad = [
    (partial(resolve_layer, FCN3((4,), 1), "block3"), "a mix point of FCN3 (input, block1, block2), got 'block3'"),
    (partial(resolve_layer, Backbone(), "hidden"), "layer must be a mix point of Backbone"),
    *bad(lambda part: getattr(Backbone(), part)(torch.zeros(1, 2)), ("features", "head"), "Backbone offers no {}"),
    *bad(partial(ConvMAML, out_features=15), ((5,), (3, 128, 128), (1, 100, 128), (1, 0, 16), (168, 8)),
          "in_shape must be (1, H, W)"),
    (partial(ConvMAML, (1, 32, 32), 15, width=0), "width must be a whole number, 1 or more, got 0"),
    (partial(DeepDTA, (3, 4), 1, 17), "in_shape must be (values,) for DeepDTA, got (3, 4)"),
    (partial(DeepDTA, (SMALLEST + 1,), 1, 17), f"drug_length 17 does not fit inputs of {SMALLEST + 1} values"),
    (partial(DeepDTA, (63 * 15 + 26 * 24,), 1, 15), "drug_length must be 16 or more for DeepDTA, got 15"),
    (partial(DeepDTA, (63 * 17 + 26 * 21,), 1, 17), "protein_length must be 22 or more for DeepDTA, got 21"),
    (partial(LSTNet, (5,), 3), "in_shape must be (window, series) for LSTNet, got (5,)"),
    (partial(LSTNet, (20, 3), 3), "window must be 24 or more for LSTNet, got 20"),
    (partial(LSTNet, (28, 3), 3), "window must be 29 or more for the skip variant, got 28"),
    (partial(LSTNet, (53, 3), 4), "out_features must be at most 3, the number of series, for LSTNet, got 4"),
    (partial(LSTNet, (53, 3), 5, steps=2), "out_features must be 2 steps of at most 3 series, for LSTNet, got 5"),
    (partial(LSTNet, (53, 3), 3, channels=0), "channels must be a whole number, 1 or more, got 0"),
    (partial(LSTNet, (53, 3), 3, variant="jump"), "variant must be one of skip, attention, got 'jump'"),
    (partial(LSTNet, (53, 3), 3, score="sum"), "score must be one of dot, cosine, mlp, got 'sum'"),
    (partial(R2Plus1D18, (5,), 1), "in_shape must be (3, frames, height, width) for R2Plus1D18, got (5,)"),
    (partial(R2Plus1D18, VIDEO, 1, weights="nowhere.pth"), "weights nowhere.pth cannot be read: No such file"),
    (partial(ResNet, (5,), 1), "in_shape must be (channels, height, width) for ResNet, got (5,)"),
    *((partial(kind, (5,), 1, **{name: 0}), f"{name} must be a whole number, 1 or more, got 0") for kind, name in
      ((FCN3, "width"), (FCN3, "depth"), (RealMLP, "width"), (RealMLP, "depth"), (TabM, "k"))),
    *((partial(kind, (5,), 1, dropout=1.0), "dropout must be") for kind in (RealMLP, TabM)),
    *((partial(kind, (3, 4), 1), f"in_shape must be (features,) for {kind.__name__}, got (3, 4)")
      for kind in (RealMLP, TabM)),
    (partial(ResNet, (3, 20, 24), 1, depth=101), "depth must be one of 18, 50, got 101"),
]  # fmt: skip
test_bad_arguments_are_refused = refused(BAD)
