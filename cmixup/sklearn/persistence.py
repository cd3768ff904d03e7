"""A fitted `CMixupRegressor` as a file of arrays and JSON that runs no code when it is read."""

from __future__ import annotations

import io
import json
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.sklearn.network import networks_of
from cmixup.sklearn.trees import Trees, check_trees, level_sets, no_trees

FORMAT = "cmixup.sklearn.CMixupRegressor/4"
NO_TREES = "cmixup.sklearn.CMixupRegressor/3"  # networks alone
NO_RESIDUALS = "cmixup.sklearn.CMixupRegressor/2"  # without the residuals that make intervals
ONE_NETWORK = "cmixup.sklearn.CMixupRegressor/1"  # the format before, of one network and columns of numbers alone
NUMBERS = (
    "bandwidth_", "best_epoch_", "n_epochs_", "loss_curve_", "n_features_in_", "_one_dimensional", "_levels",
)  # fmt: skip
MOMENTS = ("x_mean_", "x_scale_", "y_mean_", "y_scale_")
RESIDUALS = ("_residuals", "_residual_weights", "_residual_members")
ARRAYS = ("bandwidths_", "validation_scores_", *MOMENTS, "_indicators", "_pieces", *RESIDUALS, "tree_weight_")
TREES = tuple(f"tree_{name}" for name in Trees._fields)

AnyEstimator = TypeVar("AnyEstimator", bound=Any)


def write_estimator(estimator: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator: its arguments and numbers as JSON, its arrays as they are.

    Raises:
        InputError: an argument has no form in JSON.
    """
    names = getattr(estimator, "feature_names_in_", None)
    told = {
        "format": FORMAT,
        "params": {name: _param(name, value) for name, value in estimator.get_params(deep=False).items()},
        "numbers": {name: getattr(estimator, name) for name in NUMBERS},
        "feature_names": None if names is None else names.tolist(),
        "layers": len(estimator.coefs_),
    }
    arrays = {name: getattr(estimator, name) for name in ARRAYS}
    arrays |= {f"coef{k}": coef for k, coef in enumerate(estimator.coefs_)}
    arrays |= {f"intercept{k}": intercept for k, intercept in enumerate(estimator.intercepts_)}
    arrays |= dict(zip(TREES, vars(estimator)["_trees"], strict=True))
    content = io.BytesIO()
    np.savez(content, json=np.array(json.dumps(told)), **arrays)
    write_atomically(Path(path), content.getvalue())


def read_estimator(kind: type[AnyEstimator], path: str | PathLike[str]) -> AnyEstimator:
    """Return the estimator that `write_estimator` wrote.

    Raises:
        InputError: the file is not one of these.
    """
    try:
        with zipfile.ZipFile(path) as archive:  # `write_estimator` packs nothing: no file holds more than its size
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("it is packed")
        with np.load(Path(path), allow_pickle=False) as file:
            told, arrays = json.loads(str(file["json"])), dict(file)
            for before, renewed in OLDER.items():
                if told["format"] == before:
                    told, arrays = renewed(told, arrays)
            if told["format"] != FORMAT:
                raise InputError(f"path must be a file of the format {FORMAT}, got {told['format']!r}")
            estimator = kind(**{name: _tuples(value) for name, value in told["params"].items()})
            for name in NUMBERS:
                setattr(estimator, name, told["numbers"][name])
            for name in ARRAYS:
                setattr(estimator, name, arrays[name])
            vars(estimator)["_trees"] = Trees(*(arrays[name] for name in TREES))
            estimator.coefs_ = [arrays[f"coef{k}"] for k in range(told["layers"])]
            estimator.intercepts_ = [arrays[f"intercept{k}"] for k in range(told["layers"])]
        if told["feature_names"] is not None:
            estimator.feature_names_in_ = np.array(told["feature_names"], dtype=object)
        _check(estimator)
    except (InputError, FileNotFoundError):
        raise
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"path must be a file that CMixupRegressor.save wrote, got {str(path)!r}: {reason}") from None
    return estimator


def _of_one_network(told: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file of the format before holds, as this format has it."""
    numbers, before = told["numbers"], {"members": 1, "n_pieces": 0, "categorical_features": None}
    numbers |= {
        "best_epoch_": [numbers["best_epoch_"]],
        "loss_curve_": [],
        "_levels": [None] * numbers["n_features_in_"],
    }
    layers = {name: value[None] for name, value in arrays.items() if name.startswith(("coef", "intercept"))}
    empty = {"_indicators": np.empty((0, 2)), "_pieces": np.empty((0, 5))}
    return {**told, "format": NO_RESIDUALS, "params": before | told["params"]}, arrays | layers | empty


def _without_residuals(told: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file of format 2 holds, as this format has it: no row was held out that it knows of."""
    members, outputs = arrays["intercept0"].shape[0], arrays["y_mean_"].shape[0]
    shapes = zip(RESIDUALS, ((0, outputs), (0,), (0, members)), strict=True)
    return {**told, "format": NO_TREES}, arrays | {name: np.empty(shape) for name, shape in shapes}


def _without_trees(told: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file of format 3 holds, as this format has it: networks alone."""
    members, outputs = arrays["intercept0"].shape[0], arrays["y_mean_"].shape[0]
    trees = dict(zip(TREES, no_trees(members, outputs), strict=True))
    params = {**told["params"], "blend": None}
    return {**told, "format": FORMAT, "params": params}, arrays | trees | {"tree_weight_": np.zeros(outputs)}


#: What reads each format before, the oldest first; each makes the next of it.
OLDER = {ONE_NETWORK: _of_one_network, NO_RESIDUALS: _without_residuals, NO_TREES: _without_trees}


def _check(estimator: Any) -> None:
    """Raise `ValueError` for what `fit` never leaves: numbers that are not finite, and parts that do not fit."""
    levels, indicators, pieces = (vars(estimator)[name] for name in ("_levels", "_indicators", "_pieces"))
    network = networks_of(estimator.coefs_, estimator.intercepts_, pieces)[0]  # refuses shapes that do not fit
    linears: Any = network.linears
    columns, outputs = linears[0].in_features - len(pieces), linears[-1].out_features
    features, numbers = len(levels), levels.count(None)
    names = getattr(estimator, "feature_names_in_", np.full(features, ""))
    if estimator.n_features_in_ != features or names.shape != (features,) or columns != numbers + len(indicators):
        raise ValueError(f"a network of {columns} columns does not go with the features")
    if not all(isinstance(name, str) for name in names):
        raise ValueError("names of features must be texts")
    if vars(estimator)["_one_dimensional"] not in (False, outputs == 1):
        raise ValueError(f"{outputs} outputs do not go with the shape of the labels")
    tried = len(estimator.bandwidths_)
    shapes = [
        (tried,),
        (tried,),
        (columns,),
        (columns,),
        (outputs,),
        (outputs,),
        (len(indicators), 2),
        (len(pieces), 5),
        (len(vars(estimator)["_residuals"]), outputs),
        (len(vars(estimator)["_residuals"]),),
        (len(vars(estimator)["_residuals"]), len(estimator.coefs_[0])),
        (outputs,),
    ]
    for name, shape in zip(ARRAYS, shapes, strict=True):
        value = getattr(estimator, name)
        if value.dtype != np.float64 or value.shape != shape:
            raise ValueError(f"{name} must be float64 {shape}, got {value.dtype} {value.shape}")
    sizes, weight, members = (vars(estimator)[name] for name in RESIDUALS)
    if not ((sizes >= 0) | np.isnan(sizes)).all() or not (weight > 0).all() or not members.any(axis=1).all():
        raise ValueError("its residuals must be 0 or more, of rows that a member held out")
    _check_blend(estimator, len(estimator.coefs_[0]), outputs)
    moments = [getattr(estimator, name) for name in MOMENTS]
    if not all(np.isfinite(value).all() for value in (*moments, pieces, *estimator.coefs_, *estimator.intercepts_)):
        raise ValueError("its weights and scales must be finite")
    if not (np.isin(indicators[:, 0], np.arange(features)).all() and np.isin(pieces[:, 0], np.arange(numbers)).all()):
        raise ValueError("its columns must be those of the features")
    if not (pieces[:, [2, 4]] > 0).all():
        raise ValueError("its pieces must have a width and a scale above 0")


def _check_blend(estimator: Any, members: int, outputs: int) -> None:
    """Raise `ValueError` for trees that `fit` never leaves."""
    trees, levels, weight = vars(estimator)["_trees"], vars(estimator)["_levels"], estimator.tree_weight_
    in_sets = sum(len(levels[place]) for place in level_sets(levels)) if weight.any() else trees.codes.shape[1]
    shapes = [
        (len(trees.nodes), 8),
        (len(trees.sets), 8),
        (len(trees.sizes), 4),
        (members, outputs),
        (members, in_sets),
    ]
    if [value.shape for value in trees] != shapes or any(value.dtype != np.float64 for value in trees):
        raise ValueError("its trees must be arrays of its members, outputs and levels")
    if not ((weight >= 0) & (weight <= 1)).all():
        raise ValueError("its trees must have a weight between 0 and 1")
    if weight.any():
        check_trees(trees, len(levels))


def _param(name: str, value: Any) -> Any:
    """Return an argument as JSON holds it; of `cv` a number alone, since a splitter may be any object."""
    return (value if isinstance(value, int) else None) if name == "cv" else _plain(name, value)


def _plain(name: str, value: Any) -> Any:
    """Return an argument as JSON holds it; a tuple becomes {"tuple": [...]}.

    Raises:
        InputError: JSON has no form for it.
    """
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
