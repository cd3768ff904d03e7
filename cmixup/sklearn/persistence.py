"""A fitted `TabularRegressor` as a file of arrays and JSON that runs no code when it is read."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.sklearn.columns import many_levels
from cmixup.sklearn.intervals import Intervals
from cmixup.sklearn.table import Table
from cmixup.sklearn.transforms import Transform
from cmixup.sklearn.trees import Trees, check_trees, tree_levels

FORMAT = "cmixup.sklearn.TabularRegressor/11"
#: The parts of a fitted estimator that have fields, by the names of the attributes that hold them.
KINDS: dict[str, Any] = {
    "_table": Table, "_table.transform": Transform, "_intervals": Intervals, "_trees": Trees, "_intervals.trees": Trees
}  # fmt: skip
#: No file holds rows, the models of a user, and what `set_fit_request` asked of scikit-learn.
LEFT_OUT = ("_held_out", "blended_", "_metadata_request")

AnyEstimator = TypeVar("AnyEstimator", bound=Any)


def write_estimator(estimator: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator, see `TabularRegressor.save`: arguments and numbers as JSON, arrays as they are."""
    params, arrays = estimator.get_params(deep=False), dict[str, Any]()
    arguments = {name: tuple(value) if getattr(value, "ndim", 0) else value for name, value in params.items()}
    if not isinstance(arguments["cv"], Integral):
        arguments["cv"] = None
    fitted = {name: value for name, value in vars(estimator).items() if name not in {*params, *LEFT_OUT}}
    content = {"format": FORMAT, "params": _to_json("", arguments, arrays), "fitted": _to_json("", fitted, arrays)}
    arrays["json"] = np.array(json.dumps(content))
    file = io.BytesIO()
    np.savez(file, digest=np.array(_digest(arrays)), **arrays)
    write_atomically(Path(path), file.getvalue())


def read_estimator(estimator_class: type[AnyEstimator], path: str | PathLike[str]) -> AnyEstimator:
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
        estimator = estimator_class(**_from_json("", content["params"], arrays))
        vars(estimator).update(_from_json("", content["fitted"], arrays), _held_out=None, blended_=[])
        table, trees, spread = estimator._table, estimator._trees, estimator._intervals.trees  # noqa: SLF001
        members, _, fitted = estimator.coefs_[-1].shape
        if estimator.n_features_in_ != len(table.levels):
            raise ValueError("its features must be those of its levels")
        if trees is not None:
            effects = table.effects.shape[2] * len(many_levels(table.levels))
            check_trees(trees, tree_levels(table.levels, effects), members, fitted)
        if spread is not None:
            check_trees(spread, tree_levels(table.levels, fitted), *spread.starts.shape)
    except (InputError, FileNotFoundError):
        raise
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"path must be a file that TabularRegressor.save wrote, got {str(path)!r}: {reason}") from None
    return estimator


def _to_json(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return an argument or attribute as JSON holds it; arrays of numbers are added to `arrays` by their names.

    JSON has no form for arrays, tuples and parts with fields: they become {kind: content}.
    """
    if isinstance(value, np.ndarray):
        arrays[name] = value.astype(str) if value.dtype == object else value  # names
        return {"array": name}
    if name in KINDS and value is not None:
        value = value._asdict() if isinstance(value, Trees) else vars(value)
    if isinstance(value, dict):
        prefix = f"{name}." if name else ""
        return {"fields": {key: _to_json(prefix + key, entry, arrays) for key, entry in value.items()}}
    if isinstance(value, list | tuple):
        entries = [_to_json(f"{name}.{k}", entry, arrays) for k, entry in enumerate(value)]
        return {"tuple": entries} if isinstance(value, tuple) else entries
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float):
        return value
    raise InputError(f"{name} must be a number, a text, or a tuple of these to be saved, got {value!r}")


def _from_json(name: str, value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the value that `_to_json` was given."""
    if isinstance(value, list):
        return [_from_json(name, entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "array":
        return arrays[content]
    if tag == "tuple":
        return tuple(_from_json(name, content, arrays))
    prefix = f"{name}." if name else ""
    return KINDS.get(name, dict)(**{key: _from_json(prefix + key, entry, arrays) for key, entry in content.items()})


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of names, kinds, shapes and values of arrays."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()
