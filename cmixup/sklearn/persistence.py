"""A fitted `TabularRegressor` as a file of arrays and JSON that runs no code when it is read."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.sklearn.columns import Levels, many_levels
from cmixup.sklearn.intervals import Intervals
from cmixup.sklearn.table import Table
from cmixup.sklearn.transforms import Transform
from cmixup.sklearn.trees import Trees, check_trees, tree_levels

FORMAT = "cmixup.sklearn.TabularRegressor/9"
NUMBERS = (
    "bandwidth_", "best_epoch_", "n_epochs_", "loss_curve_", "n_features_in_", "quantiles_",
    "_table.one_dimensional", "_table.levels", "_table.transform.given", "_table.kinds",
)  # fmt: skip
ARRAYS = (
    "bandwidths_", "validation_scores_", "blend_weight_", "_table.x_mean", "_table.x_scale", "_table.y_mean",
    "_table.y_scale", "_table.indicators", "_table.pieces", "_table.effects", "_table.constant",
    "_intervals.residuals", "_intervals.weights", "_intervals.shares",
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
    arrays["json"] = np.array(json.dumps(content))
    file = io.BytesIO()
    np.savez(file, digest=np.array(_digest(arrays)), **arrays)
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
            if str(arrays.pop("digest")) != _digest(arrays):
                raise ValueError("it was changed after it was saved")
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
        _check_trees(estimator, estimator._table.levels, estimator._table.effects.shape[2])  # noqa: SLF001
    except (InputError, FileNotFoundError):
        raise
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"path must be a file that TabularRegressor.save wrote, got {str(path)!r}: {reason}") from None
    return estimator


def _check_trees(estimator: Any, levels: Sequence[Levels], effects: int) -> None:
    """Raise `ValueError` for trees with which predicting would leave its arrays; of a column are so many effects."""
    if estimator.n_features_in_ != len(levels):
        raise ValueError("its features must be those of its levels")
    members, _, fitted = estimator.coefs_[-1].shape
    trees, spread = (attrgetter(name)(estimator) for name in TREES)
    if trees is not None:
        check_trees(trees, tree_levels(levels, effects * len(many_levels(levels))), members, fitted)
    if spread is not None:
        check_trees(spread, tree_levels(levels, fitted), len(spread.starts), spread.starts.shape[1])


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of names, kinds, shapes and values of arrays."""
    whole = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        whole.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return whole.hexdigest()


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
