"""DeepDTA: the network of DTI (Ozturk et al. 2018, "DeepDTA: deep drug-target binding affinity prediction"; the variant
of mims-harvard/TDC examples/multi_pred/dti_dg/domainbed/networks.py, which the released C-Mixup code uses).

Two towers over one-hot strings, one for the drug and one for the protein: three convolutions with ReLU, the maximum
over positions, a linear layer. Then three linear layers on both towers' features with no activation between them, and
a linear head.

The released code mixes hidden states after convolution 1, 2 or 3, drawn for every step and for each tower by itself.

Difference from that code: convolutions in float32 instead of float64. Its dropout is defined but never used, so there
is none here.
"""

import itertools
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from cmixup.backbone import Backbone
from cmixup.errors import InputError

N_DRUG_SYMBOLS, N_PROTEIN_SYMBOLS = 63, 26
CHANNELS, WIDTH, FEATURES = (32, 64, 96), 256, 128
DRUG_KERNELS, PROTEIN_KERNELS = (4, 6, 8), (4, 8, 12)
DEPTHS = (1, 2, 3)


class Tower(nn.Module):
    """Three convolutions (no padding, stride 1) on a one-hot string, their maximum over positions, a linear layer."""

    def __init__(self, symbols: int, kernels: tuple[int, ...]):
        super().__init__()
        widths = (symbols, *CHANNELS)
        self.convs = nn.ModuleList(nn.Conv1d(a, b, k) for a, b, k in zip(widths[:-1], widths[1:], kernels, strict=True))
        self.out = nn.Linear(CHANNELS[-1], WIDTH)

    def convolve(self, x: Tensor, first: int, last: int) -> Tensor:
        """Run convolutions `first + 1` to `last` on `x: (B, channels, length)`."""
        for conv in list(self.convs)[first:last]:
            x = torch.relu(conv(x))
        return x

    def summarise(self, x: Tensor, done: int) -> Tensor:
        """Return `(B, 256)` from the map `x` after `done` convolutions."""
        return self.out(self.convolve(x, done, len(CHANNELS)).amax(dim=-1))


# The mix points by how many convolutions lie before them in the drug's and in the protein's tower.
POINTS = {f"conv{d}" if d == p else f"conv{d}-conv{p}": (d, p) for d, p in itertools.product(DEPTHS, DEPTHS)}


class DeepDTA(Backbone):
    """Affinity of a drug and a protein.

    Mix points: "conv1", "conv2" and "conv3" are after that convolution in both towers, "conv1-conv3" after the first in
    the drug's and after the third in the protein's; "conv" draws one of the nine for every batch. A hidden state is
    (drug map, protein map).

    Args:
        in_shape: shape of one input, `(63 * drug length + 26 * protein length,)`: both one-hot strings, channel by
            channel, drug first.
        out_features: label width d_y.
        drug_length: positions of the drug's string.

    Raises:
        InputError: an input of another length, or strings shorter than the convolutions reach.
    """

    layers = ("input", *POINTS)
    default_layer = "conv"
    draws = False
    layer_choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"conv": tuple(POINTS)}

    def __init__(self, in_shape: tuple[int, ...], out_features: int, drug_length: int = 100):
        super().__init__()
        if len(in_shape) != 1:
            raise InputError(f"in_shape must be (values,) for DeepDTA, got {tuple(in_shape)}")
        protein_length, remainder = divmod(in_shape[0] - N_DRUG_SYMBOLS * drug_length, N_PROTEIN_SYMBOLS)
        if remainder:
            raise InputError(
                f"drug_length {drug_length} does not fit inputs of {in_shape[0]} values: "
                f"{N_DRUG_SYMBOLS} a position of the drug, {N_PROTEIN_SYMBOLS} a position of the protein"
            )
        strings = {"drug_length": (drug_length, DRUG_KERNELS), "protein_length": (protein_length, PROTEIN_KERNELS)}
        for name, (length, kernels) in strings.items():
            minimum = sum(kernels) - len(kernels) + 1
            if length < minimum:
                raise InputError(f"{name} must be {minimum} or more for DeepDTA, got {length}")
        self.drug_length = drug_length
        self.drug, self.protein = Tower(N_DRUG_SYMBOLS, DRUG_KERNELS), Tower(N_PROTEIN_SYMBOLS, PROTEIN_KERNELS)
        self.predictor = nn.Sequential(
            nn.Linear(2 * WIDTH, WIDTH), nn.Linear(WIDTH, FEATURES), nn.Linear(FEATURES, FEATURES)
        )
        self.out = nn.Linear(FEATURES, out_features)

    def encode(self, x: Tensor, layer: str) -> Tensor | tuple[Tensor, Tensor]:
        """Run inputs `(B, values)` to `layer`; past the input, maps of drug and protein `(B, channels, positions)`."""
        if layer not in POINTS:
            return super().encode(x, layer)
        drug, protein = self._strings(x)
        n_drug, n_protein = POINTS[layer]
        return self.drug.convolve(drug, 0, n_drug), self.protein.convolve(protein, 0, n_protein)

    def decode(self, state: Tensor | tuple[Tensor, Tensor], layer: str) -> Tensor:
        if layer not in POINTS:
            return super().decode(state, layer)
        return self.head(self._combine((state[0], state[1]), POINTS[layer]))

    def features(self, x: Tensor) -> Tensor:
        return self._combine(self._strings(x), (0, 0))

    def head(self, features: Tensor) -> Tensor:
        return self.out(features)

    def _strings(self, x: Tensor) -> tuple[Tensor, Tensor]:
        width = N_DRUG_SYMBOLS * self.drug_length
        drug, protein = x[:, :width], x[:, width:]
        return drug.reshape(len(x), N_DRUG_SYMBOLS, -1), protein.reshape(len(x), N_PROTEIN_SYMBOLS, -1)

    def _combine(self, maps: tuple[Tensor, Tensor], done: tuple[int, int]) -> Tensor:
        drug, protein = self.drug.summarise(maps[0], done[0]), self.protein.summarise(maps[1], done[1])
        return self.predictor(torch.cat([drug, protein], dim=-1))
