"""A fitted `TabularRegressor` as a file of arrays and JSON that runs no code when it is read."""

import io
import json
import zipfile
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.sklearn.columns import many_levels
from cmixup.sklearn.intervals import SHARES, Intervals
from cmixup.sklearn.network import predict_networks
from cmixup.sklearn.table import Table
from cmixup.sklearn.transforms import Transform
from cmixup.sklearn.trees import Trees, check_trees, tree_levels

FORMAT = "cmixup.sklearn.TabularRegressor/8"
NUMBERS = (
    "bandwidth_", "best_epoch_", "n_epochs_", "loss_curve_", "n_features_in_", "quantiles_",
    "_table.one_dimensional", "_table.levels", "_table.transform.given", "_table.kinds",
)  # fmt: skip
MOMENTS = ("_table.x_mean", "_table.x_scale", "_table.y_mean", "_table.y_scale")
ARRAYS = (
    "bandwidths_", "validation_scores_", *MOMENTS, "_table.indicators", "_table.pieces", "_intervals.residuals",
    "_intervals.weights", "blend_weight_", "_table.effects", "_table.constant", "_intervals.shares",
)  # fmt: skip
#: The trees of members and those of the spread, and how their arrays' names begin.
TREES = {"_trees": "tree_", "_intervals.trees": "spread_"}

AnyEstimator = TypeVar("AnyEstimator", bound=Any)


def write_estimator(estimator: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator, see `TabularRegressor.save`: arguments and numbers as JSON, arrays as they are."""
    names = getattr(estimator, "feature_names_in_", None)
    content = {
        "format": FORMAT,
        "params": {name: _plain(name, value) for name, value in estimator.get_params(deep=False).items()},
        "numbers": {name: attrgetter(name)(estimator) for name in NUMBERS},
        "feature_names": None if names is None else names.tolist(),
        "layers": len(estimator.coefs_),
    }
    arrays = {name: attrgetter(name)(estimator) for name in ARRAYS}
    arrays |= {f"coef{k}": coef for k, coef in enumerate(estimator.coefs_)}
    arrays |= {f"intercept{k}": intercept for k, intercept in enumerate(estimator.intercepts_)}
    for name, start in TREES.items():
        if (trees := attrgetter(name)(estimator)) is not None:
            arrays |= {start + field: array for field, array in trees._asdict().items()}
    if (importances := vars(estimator)["_importances"]) is not None:
        arrays["importances"] = importances
    file = io.BytesIO()
    np.savez(file, json=np.array(json.dumps(content)), **arrays)
    write_atomically(Path(path), file.getvalue())


def read_estimator(kind: type[AnyEstimator], path: str | PathLike[str]) -> AnyEstimator:
    """Return the estimator that `write_estimator` wrote, see `TabularRegressor.load`."""
    try:
        with zipfile.ZipFile(path) as archive:  # `write_estimator` packs nothing: no file holds more than its size
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("it is packed")
        with np.load(Path(path), allow_pickle=False) as file:
            content, arrays = json.loads(str(file["json"])), dict(file)
            if content["format"] != FORMAT:
                raise InputError(f"path must be a file of the format {FORMAT}, got {content['format']!r}")
            estimator = kind(**{name: _tuples(value) for name, value in content["params"].items()})
            values = {name: content["numbers"][name] for name in NUMBERS} | {name: arrays[name] for name in ARRAYS}
            for name, start in TREES.items():
                fields = [arrays[start + field] for field in Trees._fields if f"{start}nodes" in arrays]
                values[name] = Trees(*fields) if fields else None
            of: dict[str, Any] = {"": vars(estimator), "_table": {}, "_table.transform": {}, "_intervals": {}}
            for name, value in values.items():
                holder, _, field = name.rpartition(".")
                of[holder][field] = value
            estimator._table = Table(**of["_table"], transform=Transform(**of["_table.transform"]))  # noqa: SLF001
            estimator._intervals = Intervals(**of["_intervals"])  # noqa: SLF001
            vars(estimator).update(_held_out=None, blended_=[], _importances=arrays.get("importances"))
            estimator.coefs_ = [arrays[f"coef{k}"] for k in range(content["layers"])]
            estimator.intercepts_ = [arrays[f"intercept{k}"] for k in range(content["layers"])]
        if content["feature_names"] is not None:
            estimator.feature_names_in_ = np.array(content["feature_names"], dtype=object)
        _check(estimator)
    except (InputError, FileNotFoundError):
        raise
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"path must be a file that TabularRegressor.save wrote, got {str(path)!r}: {reason}") from None
    return estimator


def _check(estimator: Any) -> None:
    """Raise `ValueError` for what `fit` never leaves: numbers that are not finite, and parts that do not fit."""
    table, intervals, trees, importances = (
        vars(estimator)[n] for n in ("_table", "_intervals", "_trees", "_importances")
    )
    levels, indicators, pieces = table.levels, table.indicators, table.pieces
    columns = estimator.coefs_[0].shape[1] - len(pieces)
    one_row = torch.zeros(1, columns, dtype=torch.float64)
    fitted = predict_networks(estimator.coefs_, estimator.intercepts_, pieces, one_row).shape[2]  # refuses other shapes
    outputs = len(table.y_mean)
    features, numbers, members = len(levels), levels.count(None), len(estimator.coefs_[0])
    many = many_levels(levels)
    in_effects, in_tables = 2 * outputs * len(many), sum(len(levels[place]) + 2 for place in many)
    of_trees = tree_levels(levels, in_effects)
    names = getattr(estimator, "feature_names_in_", np.full(features, ""))
    plain = columns - in_effects
    tried, held, weight = len(estimator.bandwidths_), len(intervals.residuals), estimator.blend_weight_
    shapes = dict(zip(ARRAYS, (
        (tried,), (tried,), (plain,), (plain,), (outputs,), (outputs,), (len(indicators), 2), (len(pieces), 5),
        (held, outputs), (held,), (fitted,), (members, in_tables, 2 * outputs), (features,), (outputs,),
    ), strict=True))  # fmt: skip
    for name, shape in shapes.items():
        value = attrgetter(name)(estimator)
        if value.dtype != np.float64 or value.shape != shape:
            raise ValueError(f"{name} must be float64 {shape}, got {value.dtype} {value.shape}")
    sizes = intervals.residuals
    finite = [attrgetter(name)(estimator) for name in (*MOMENTS, "_table.effects")]
    finite += [pieces, *estimator.coefs_, *estimator.intercepts_]
    rules = {
        "features must be those of its networks": (estimator.n_features_in_, *names.shape, len(table.kinds))
        == (features,) * 3
        and all(isinstance(name, str) for name in names)
        and plain == numbers + len(indicators),
        "outputs must be those of its labels": fitted == outputs * (len(estimator.quantiles_) or 1)
        and table.one_dimensional in (False, outputs == 1)
        and table.transform.given in (None, "log"),
        "trees must be those that have a weight in [0, 1]": (trees is not None) == weight.any()
        and ((weight >= 0) & (weight <= 1)).all(),
        "weights and scales must be finite": all(np.isfinite(value).all() for value in finite),
        "residuals must be 0 or more": ((sizes >= 0) | np.isnan(sizes) | bool(estimator.quantiles_)).all()
        and (intervals.weights > 0).all()
        and np.isin(intervals.shares, SHARES).all(),
        "importances must be a number for each feature": importances is None or importances.shape == (features,),
        "columns must be those of the features": np.isin(indicators[:, 0], np.arange(features)).all()
        and np.isin(pieces[:, 0], np.arange(numbers)).all(),
        "pieces must have a width and a scale above 0": (pieces[:, [2, 4]] > 0).all(),
    }
    for rule, holds in rules.items():
        if not holds:
            raise ValueError(f"its {rule}")
    if trees is not None:
        check_trees(trees, of_trees, members, fitted)
    if (spread := intervals.trees) is not None:
        check_trees(spread, tree_levels(levels, fitted), len(spread.starts), outputs)


def _plain(name: str, value: Any) -> Any:
    """Return an argument as JSON holds it; a tuple becomes {"tuple": [...]}, and a `cv` that is no number None."""
    if name == "cv" and not isinstance(value, int):  # a splitter may be any object
        return None
    if isinstance(value, np.ndarray | np.generic):
        value = tuple(value.tolist()) if value.ndim else value.item()
    if isinstance(value, tuple):
        return {"tuple": [_plain(name, entry) for entry in value]}
    if isinstance(value, list):
        return [_plain(name, entry) for entry in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise InputError(f"{name} must be a number, a text, or a tuple of these to be saved, got {value!r}")


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_tuples(entry) for entry in value["tuple"])
    return [_tuples(entry) for entry in value] if isinstance(value, list) else value
