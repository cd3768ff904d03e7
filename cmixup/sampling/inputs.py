"""Checks and conversions of what callers pass in; everything is refused before any work is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cmixup.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator | torch.Generator

# Squares of labels and of label / bandwidth have to stay finite in float64.
LARGEST = 1e150


def as_labels(name: str, labels: Any) -> Any:
    """Return labels as a float array or tensor of the same kind and device, checked.

    float32 and float64 are passed on without a copy (memory maps stay memory maps); everything else is
    converted to float64.

    Args:
        name: how the argument is called in error messages.
        labels: (N,) or (N, d) real array, sequence or tensor.

    Returns:
        (N,) or (N, d) array or tensor, float32 or float64; (N, 1) is returned as (N,).

    Raises:
        InputError: wrong shape or type, no labels, NaN, infinite or astronomically large labels.
    """
    if isinstance(labels, torch.Tensor):
        labels = labels.detach()
        if labels.is_complex():
            raise InputError(f"{name} must be real numbers, got dtype {labels.dtype}")
        if labels.dtype not in (torch.float32, torch.float64):
            labels = labels.double()
    else:
        labels = np.asarray(labels)
        if labels.dtype.kind not in "biuf":
            raise InputError(f"{name} must be real numbers, got dtype {labels.dtype}")
        if labels.dtype not in (np.float32, np.float64):
            labels = labels.astype(np.float64)
    if labels.ndim not in (1, 2):
        raise InputError(f"{name} must have shape (N,) or (N, d), got {tuple(labels.shape)}")
    if 0 in labels.shape:
        raise InputError(f"{name} must not be empty, got shape {tuple(labels.shape)}")
    lowest, highest = float(labels.min()), float(labels.max())  # either is NaN if any label is
    if not (lowest >= -LARGEST and highest <= LARGEST):
        flat = to_numpy(labels).astype(np.float64).reshape(-1)
        bad = ~((flat >= -LARGEST) & (flat <= LARGEST))
        first = int(bad.nonzero()[0][0])
        raise InputError(
            f"{name} must be finite (and within +-{LARGEST:g}), got {float(flat[first])!r} "
            f"in row {first // (labels.shape[1] if labels.ndim == 2 else 1)}"
        )
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def as_queries(name: str, labels: Any, like: Any) -> Any:
    """Return labels of anchors outside the data: checked, float64, (B,) or (B, d) as `like` (the data).

    The data's kind and device are kept.

    Raises:
        InputError: as `as_labels`, or if the dimension differs from the data's.
    """
    if isinstance(like, torch.Tensor):
        queries = as_labels(name, torch.as_tensor(labels, device=like.device)).double()
    else:
        queries = as_labels(name, to_numpy(labels)).astype(np.float64)
    if queries.shape[1:] != like.shape[1:]:
        raise InputError(f"{name} must have shape (B{_tail(like)}) as the data, got {tuple(queries.shape)}")
    return queries


def for_kernel(name: str, labels: Any, kernel: str) -> Any:
    """Return labels as `kernel` compares them: (N, d) unit vectors for "cosine", unchanged for the others.

    Raises:
        InputError: cosine of one-dimensional labels or of a zero vector.
    """
    if kernel != "cosine":
        return labels
    if labels.ndim == 1:
        raise InputError(f"{name} must have shape (N, d) with d > 1 for kernel 'cosine', got {labels.shape}")
    wide = labels.double() if isinstance(labels, torch.Tensor) else labels.astype(np.float64)
    length = (wide**2).sum(1) ** 0.5
    if not bool((length > 0).all()):
        raise InputError(f"{name} must not hold zero vectors for kernel 'cosine', got {float(length.min())}")
    return wide / length[:, None]


def as_anchors(name: str, anchors: Any, n: int, device: torch.device | None = None) -> Any:
    """Return anchor indices as (B,) int64: NumPy, or a tensor on `device` if one is given.

    Raises:
        InputError: not a one-dimensional array of integers, or an index outside 0..n-1.
    """
    found: Any
    if device is not None:
        found = torch.as_tensor(anchors, device=device)
        whole = not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    else:
        found = to_numpy(anchors)
        whole = found.dtype.kind in "iu"
    if found.ndim != 1 or not (whole or found.shape[0] == 0):
        raise InputError(f"{name} must be a one-dimensional array of integers, got {tuple(found.shape)} {found.dtype}")
    if found.shape[0]:
        lowest, highest = int(found.min()), int(found.max())
        if lowest < 0 or highest >= n:
            raise InputError(f"{name} must lie in 0..{n - 1}, got {lowest if lowest < 0 else highest}")
    return found.long() if isinstance(found, torch.Tensor) else found.astype(np.int64, copy=False)


def to_numpy(values: Any) -> Any:
    """Return an array or tensor of any device as a NumPy array (no copy where that is possible)."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return (values.double() if values.dtype == torch.bfloat16 else values).numpy()
    return np.asarray(values)


def numpy_rng(rng: Rng) -> np.random.Generator:
    """Return `rng`, or a NumPy generator seeded by (and so advancing) a torch one.

    Raises:
        InputError: `rng` is neither.
    """
    if isinstance(rng, torch.Generator):
        seed = torch.randint(2**62, (2,), generator=rng, device=rng.device)
        return np.random.default_rng(seed.tolist())
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator or torch.Generator, got {rng!r}")
    return rng


def torch_rng(rng: Rng, device: torch.device) -> torch.Generator:
    """Return `rng` if it is a generator of `device`, else one of that device seeded by it.

    Raises:
        InputError: `rng` is neither a NumPy nor a torch generator.
    """
    if isinstance(rng, torch.Generator) and rng.device == device:
        return rng
    seed = int(numpy_rng(rng).integers(2**62))
    return torch.Generator(device).manual_seed(seed)


def _tail(labels: Any) -> str:
    return ",".join(["", *(f" {d}" for d in labels.shape[1:])]) or ","
