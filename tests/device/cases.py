"""Every method with every backbone that it suits, on data of a few rows: what the tests of a device train."""

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData, Split, Tasks
from cmixup.networks.fcn3 import FCN3
from cmixup.networks.resnet import ResNet
from cmixup.seeding import Streams, torch_seed
from cmixup.training.method import Method
from cmixup.training.trainer import Run
from models.conv_maml import ConvMAML
from models.deepdta import DeepDTA
from models.lstnet import LSTNet
from models.r2plus1d_18 import R2Plus1D18
from scripts.config.compose import option_names, part_file
from tests.helpers import Lazy, choices, composed, method_kind, needs_images, put_together
from tests.methods.episodes import Small
from tests.mixing.images import ConvNet

ROWS = {"train": 16, "val": 4, "test": 4}
SHOTS, SIDE = 5, 16


class Views:
    """Clips; training reads a random one, evaluation all three."""

    def __init__(self, x: Tensor):
        self.x, self.shape = x, x.shape

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Tensor) -> Tensor:
        return self.x[index]

    def sample(self, index: Tensor, draw: Tensor) -> Tensor:
        return self.x[index] + (draw % 7).float().reshape(-1, *[1] * (self.x.ndim - 1)) / 70

    def all_views(self, row: int, size: int) -> Iterator[Tensor]:
        yield from torch.split(torch.stack([self.x[row] + shift for shift in (0.0, 0.1, 0.2)]), size)


def _lstnet(in_shape: tuple[int, ...], out_features: int, **more: str) -> nn.Module:
    """LSTNet without dropout, whose masks on a device are others than on the CPU."""
    made = LSTNet(in_shape, out_features, 4, 4, **more)
    made.dropout.p = 0.0
    return made


#: By name: the shape of an input, how many labels, the network, and how its inputs are held.
BACKBONES: dict[str, tuple[tuple[int, ...], int, Callable[..., nn.Module], Callable[[Tensor], Any]]] = {
    "fcn3": ((5,), 2, FCN3, Tensor.clone),
    "lstnet": ((54, 3), 3, _lstnet, Lazy),
    "lst_attn": ((54, 3), 3, lambda i, o: _lstnet(i, o, variant="attention", score="mlp"), Tensor.clone),
    "deepdta": ((63 * 16 + 26 * 30,), 1, lambda i, o: DeepDTA(i, o, 16), Lazy),
    "convnet": ((3, 16, 16), 1, lambda i, o: ConvNet(i[0], o), Tensor.clone),
    "resnet18": ((3, 16, 16), 1, lambda i, o: ResNet(i, o, 18, width=2), Tensor.clone),
    "resnet50": ((8, 16, 16), 1, lambda i, o: ResNet(i, o, 50, width=2), Lazy),
    "r2plus1d_18": ((3, 4, 16, 16), 1, lambda i, o: R2Plus1D18(i, o, width=2), Views),
    "small": ((1, 4, 4), SHOTS, Small, Tensor.clone),
    "conv_maml": ((1, SIDE, SIDE), SHOTS, lambda i, o: ConvMAML(i, o, 3), Tensor.clone),
}
TASKS = ("small", "conv_maml")
BY_FEATURES = ("coral", "drnn", "ib_irm")  # which a part of LSTNet passes by
#: What makes searches, schedules and inner loops short enough for two epochs of two steps.
SHORT = {"outer": 2, "n_in": 2, "n_policy": 10, "inner_batch": 8, "warm_up": 1, "every": 1, "groups": 2,
         "inner_steps": 1, "report_steps": 2, "m": 2}  # fmt: skip


def make_method(method: str, **options: Any) -> Method:
    """Return a method as its configuration composes it, with its searches and schedules short."""
    node = put_together(method)
    return composed(method, **{key: value for key, value in SHORT.items() if key in node} | options)


def make_run(backbone: str, method: Method, seed: int) -> Run:
    """Return a run of the backbone on its own data."""
    in_shape, width, network, _ = BACKBONES[backbone]
    data, streams = _data(backbone, seed), Streams(seed)
    with torch_seed(streams.init):
        return Run(data, method, network(in_shape, width), streams)


@cache
def _data(backbone: str, seed: int) -> RegressionData:
    in_shape, width, _, held = BACKBONES[backbone]
    rng, splits = np.random.default_rng(seed), {}
    for name, n in ROWS.items():
        if backbone in TASKS:
            side = 4 if backbone == "small" else SIDE
            images = rng.integers(0, 256, (3, 14, side, side), np.uint8)
            labels = rng.uniform(0, 10, (3, 14)).astype(np.float32)
            views = rng.permuted(np.tile(np.arange(14), (n // 4, 1)), axis=1)[:, : 2 * SHOTS]
            tasks = Tasks(images, labels, rng.integers(3, size=n // 4), views, SHOTS)
            splits[name] = Split(tasks, tasks.y, torch.from_numpy(tasks.objects), name)
            continue
        x = torch.from_numpy(rng.random((n, *in_shape)).astype(np.float32))
        y = x.flatten(1)[:, :width] + torch.from_numpy(0.1 * rng.normal(size=(n, width)).astype(np.float32))
        splits[name] = Split(held(x), y, torch.arange(n) % 2, name)
    metrics = {"metrics": ("mse",), "selection": "mse"} if backbone in TASKS else {"worst": ("r",)}
    return RegressionData(backbone, **splits, unit="none", **metrics)


def parts(method: str) -> set[tuple[str, str]]:
    """Return the parts of a method."""
    return {("_target_", part_file("method", method)["_target_"]), *choices(method).items()}


def _image_backbone(method: str) -> str:
    return "resnet18" if method.startswith("automix") else "convnet"


def cover() -> list[tuple[str, str, dict[str, str], int]]:
    """Return as many methods as it takes to have every part, and every backbone, alone or as a stack of two."""
    chosen, seen, turns = ([], set(), itertools.cycle([*["fcn3"] * 7, "deepdta", "lstnet", *["fcn3"] * 9]))
    for name in sorted(option_names("method"), key=needs_images):  # those of images take longest
        if parts(name) <= seen:
            continue
        seen |= parts(name)
        on = TASKS[0] if method_kind(name).tasks else _image_backbone(name) if needs_images(name) else next(turns)
        on = "fcn3" if name in BY_FEATURES and on == "lstnet" else on
        linear = choices(name).get("mixing") == "linear" and "layer" in part_file("method", name)
        stacked = on == "fcn3" and len(chosen) % 2
        chosen.append((on, name, {"layer": "hidden"} if linear and on != "fcn3" else {}, 1 + stacked))
    return [
        *chosen,
        ("conv_maml", "maml", {}, 1),
        ("lst_attn", "cmixup", {"layer": "hidden"}, 1),
        ("fcn3", "cmixup", {"pairing": "permutation", "lam": "constant"}, 2),
    ]


#: Of `cover`, what trains a second epoch from a checkpoint: schedules that begin after the first, and what has a state
#: of its own.
RESTARTED = {("small", "maml"), *(("fcn3", name) for name in ("cmixup", "mixrl", "rc_mixup", "foma", "fish"))}
