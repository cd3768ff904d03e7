"""Predictions of a split beside their targets, from which scores are computed, and the errors of the study.

The study's errors are in standard deviations of the label over the whole table ("label std").
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cmixup.metrics import evaluate_normal
from cmixup.training.losses import std_name

BINS = 10  # of the label, as wide as each other
LEAST_ROWS = 30  # of a domain that counts as the worst
BITS = 12  # of a prediction's mantissa that are kept
PREDICTION = "prediction"  # of the method; those of its other predictors are called prediction_<name>
COMPRESSION = {"compression": "gzip", "compression_opts": 9, "shuffle": True}


@dataclass(frozen=True)
class Scored:
    """Targets and predictions of one split, from which its scores are computed."""

    prediction: Mapping[str, np.ndarray]  # `(N, d_y)` float32 by the predictor's name; "" is the method's own
    target: np.ndarray  # `(N, d_y)` float32
    domain: np.ndarray  # `(N,)` integers


Parts = Mapping[str, Scored]  # by split


def write_parts(group: Any, parts: Parts, places: dict[bytes, str] | None = None, **options: Any) -> None:
    """Write predictions into a group of an HDF5 file.

    Below each part, such as `val`, lie `target` and `prediction`, both `(N, d_y)` float32, `domain: (N,)`, and
    `prediction_<name>` of other predictors. Labels and domains that `places` has already become links to these.
    """
    import h5py

    for part, scored in parts.items():
        part_group = group.create_group(part)
        arrays = {f"{PREDICTION}_{name}" if name else PREDICTION: values for name, values in scored.prediction.items()}
        for name, values in {"target": scored.target, "domain": scored.domain, **arrays}.items():
            if places is not None and name not in arrays:
                first = places.setdefault(repr((values.shape, values.dtype)).encode() + values.tobytes(),
                                          f"{part_group.name}/{name}")  # fmt: skip
                if first != f"{part_group.name}/{name}":
                    part_group[name] = h5py.SoftLink(first)
                    continue
            part_group.create_dataset(name, data=values, chunks=values.shape, **COMPRESSION, **options)


def read_parts(group: Any) -> dict[str, Scored]:
    """Return what `write_parts` wrote."""
    parts = {}
    for part in ("val", "test"):
        if part in group:
            arrays = {name: values[:] for name, values in group[part].items()}
            names = [name for name in arrays if name.startswith(PREDICTION)]
            prediction = {name.removeprefix(PREDICTION).removeprefix("_"): arrays[name] for name in names}
            parts[part] = Scored(prediction, arrays["target"], arrays["domain"])
    return parts


def error_scores(scored: Scored, std: np.ndarray, *, grouped: bool = False) -> dict[str, float]:
    """Return the errors of predictions: `nrmse`, `nrmse_balanced` and, if `grouped`, `nrmse_worst` of large domains.

    `std`, `(d_y,)`, is the unit of each target.
    """
    prediction, target = scored.prediction[""], scored.target
    scores = {
        "nrmse": normalised_rmse(prediction, target, std),
        "nrmse_balanced": balanced_rmse(prediction, target, std),
    }
    ids, counts = np.unique(scored.domain, return_counts=True)
    if grouped and (large := ids[counts >= LEAST_ROWS]).size:
        rows = (scored.domain == domain for domain in large)
        scores["nrmse_worst"] = max(normalised_rmse(prediction[members], target[members], std) for members in rows)
    return scores


def normal_scores(scored: Scored, val: Scored, std: np.ndarray, predictor: str = "") -> dict[str, float]:
    """Return the scores of normal distributions, of labels in units of `std`; nothing where none are predicted.

    `val` has the validation rows, on which the factor of `_rescaled` scores is chosen. `std` is `(d_y,)` or `(1,)`, and
    `predictor` names the means.
    """
    names = predictor, std_name(predictor)
    if names[1] not in scored.prediction:
        return {}

    def in_std(part: Scored) -> tuple[torch.Tensor, torch.Tensor]:
        both = np.concatenate([part.prediction[name] / std for name in names], axis=1)
        return torch.from_numpy(both), torch.from_numpy(part.target / std)

    return evaluate_normal(*in_std(scored), in_std(val), predictor)


def finite_or_inf(value: float) -> float:
    """Return a score of the study: infinity where a value is not finite."""
    return value if math.isfinite(value) else math.inf


def normalised_rmse(prediction: np.ndarray, target: np.ndarray, std: np.ndarray) -> float:
    """Return `sqrt(mean over targets of MSE / variance)`; `(n, d_y)`, and `std` `(d_y,)`."""
    return float(np.sqrt(_squared_errors(prediction, target, std).mean()))


def balanced_rmse(prediction: np.ndarray, target: np.ndarray, std: np.ndarray) -> float:
    """Return the same where every tenth of the label's range counts alike, rare labels as much as frequent ones.

    The squared error is averaged within `BINS` bins of equal width between the lowest and the highest label, then over
    the bins that have rows, then over targets.
    """
    means = []
    for error, label in zip(_squared_errors(prediction, target, std).T, target.astype(np.float64).T, strict=True):
        place = np.minimum((BINS * (label - label.min()) / (np.ptp(label) or 1.0)).astype(int), BINS - 1)
        means.append(np.mean([error[place == k].mean() for k in np.unique(place)]))
    return math.sqrt(float(np.mean(means)))


def _squared_errors(prediction: np.ndarray, target: np.ndarray, std: np.ndarray) -> np.ndarray:
    return np.square((prediction.astype(np.float64) - target.astype(np.float64)) / std)


def rounded_predictions(scored: Scored) -> Scored:
    """Return predictions to `BITS` bits, an error of 1 in 8,000, which a file keeps in half the room."""
    shift = 24 - BITS
    half, mask = np.int32(1 << (shift - 1)), np.int32(-1 << shift)
    values: Mapping[str, np.ndarray] = {
        name: ((array.view(np.int32) + half) & mask).view(np.float32) for name, array in scored.prediction.items()
    }
    return Scored(values, scored.target, scored.domain)
