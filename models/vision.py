"""The common part of torchvision's networks: stages, import beside a PyTorch without its operators, and weights."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

from cmixup.backbone import Blockwise
from cmixup.errors import InputError

MISSING = "operator torchvision::nms does not exist"
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_kept: list[torch.library.Library] = []  # a declaration lives as long as its library


class Staged(Blockwise):
    """Stages, which have the names of the mix points, a mean over positions, and a linear layer `fc`."""

    fc: nn.Linear

    def run(self, state: Tensor, first: int, last: int) -> Tensor:
        """Run the stages between two mix points, `(B, channels, ...)`."""
        for name in self.layers[first + 1 : last + 1]:
            state = getattr(self, name)(state)
        return state

    def pool(self, state: Tensor) -> Tensor:
        """Return the last stage's mean over its positions, `(B, channels)`."""
        return state.mean(dim=tuple(range(2, state.ndim)))

    def head(self, features: Tensor) -> Tensor:
        """Return predictions `(B, d_y)`."""
        return self.fc(features)


def import_torchvision(module: str = "torchvision") -> ModuleType:
    """Import a module of torchvision, also beside a CPU build of PyTorch that cannot load its compiled operators.

    That import stops because it registers a fake of an operator that is not there. The schemas are declared only then:
    where the operators can be loaded, a second declaration would abort the process.
    """
    try:
        return importlib.import_module(module)
    except RuntimeError as error:
        if MISSING not in str(error) or _kept:
            raise
    _kept.append(torch.library.Library("torchvision", "FRAGMENT"))  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        _kept[0].define(name + _SCHEMA)  # type: ignore[no-untyped-call]
    return importlib.import_module(module)


def load_weights(network: nn.Module, path: Path) -> str:
    """Load a state dict as torchvision publishes it, but for the last layer `fc`, and return the file's SHA-256.

    Counters of BatchNorm, which files of older versions lack, may be absent.

    Raises:
        InputError: no such file, or one that does not fit.
    """
    kept = {n: v for n, v in network.state_dict().items() if n.startswith("fc.") or n.endswith("num_batches_tracked")}
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(kept | {name: value for name, value in state.items() if not name.startswith("fc.")})
    except Exception as error:  # reading what is no state dict can raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"weights {path} do not fit {type(network).__name__}: {reason}") from None
    return hashlib.sha256(path.read_bytes()).hexdigest()
