"""Import torchvision beside a PyTorch without its compiled operators."""

from __future__ import annotations

import importlib
from types import ModuleType

import torch

MISSING = "operator torchvision::nms does not exist"
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_kept: list[torch.library.Library] = []  # a declaration lives as long as its library


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
