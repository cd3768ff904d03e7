"""A method that the rules do not have: a name of configs/method, or one Python file, anywhere on this machine.

The file has a function `batch(x, y, rng)` that changes the rows of a batch, or one class that is a
`cmixup.training.method.Method`; and, if there is something to tune, `space`: a list of values for each argument.
"""

import importlib.util
import inspect
import itertools
import json
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.errors import InputError, format_value
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches, step_seeds
from cmixup.training.losses import LOSSES
from cmixup.training.method import Method
from datasets.common.fetch import sha256_of
from scripts.config.arguments import near_hint
from scripts.config.compose import CONFIG_DIR, option_names, part_file
from scripts.stats.effects import BASE
from scripts.study.rules import PATH, Rules

ENTRIES = CONFIG_DIR.parent / "examples" / "entries"
FROM_FILE = "scripts.study.entry.from_file"
Point = dict[str, Any]


class BatchMethod(Method):
    """ERM on batches that a function has changed.

    Args:
        function: takes the features `(B, d)` and labels `(B, d_y)` of one network's batch as tensors, labels as the
            loss sees them, a `numpy.random.Generator`, and options by name; returns features and labels `(n, ...)`.
        options: of this run.
        points: all options that runs of a stack may have.
    """

    per_run: ClassVar[tuple[str, ...]] = ("options",)  # each network's own, as its number of the points is drawn
    losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)

    def __init__(self, function: Callable[..., Any], options: Point, points: Sequence[Point]):
        super().__init__()
        self.function, self.options, self.points = function, options, list(points)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return which point this run has, and the seed of each batch, both as `(M,)` int64."""
        point = np.full(len(order.index), self.points.index(self.options))
        return {"point": point, "function_seed": step_seeds(order.sizes, streams.mixing)}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean squared error of what the function makes of every network's batch."""
        alone = batch.draws["point"].ndim == 1
        parts = batch.x, batch.y, batch.draws["point"], batch.draws["function_seed"]
        networks = zip(*(part[None] if alone else part for part in parts), strict=True)
        changed = [self._changed(x, y, int(point[0]), int(seed[0])) for x, y, point, seed in networks]
        if len({len(x) for x, _ in changed}) > 1:
            raise InputError("batch must return as many rows for every network, got several numbers")
        x, y = (rows[0] if alone else torch.stack(rows) for rows in zip(*changed, strict=True))
        return self.error(model(x), y)

    def _changed(self, x: Tensor, y: Tensor, point: int, seed: int) -> tuple[Tensor, Tensor]:
        rows = self.function(x, y, np.random.default_rng(seed), **self.points[point])
        if not (isinstance(rows, (tuple, list)) and len(rows) == 2 and all(isinstance(v, Tensor) for v in rows)):
            raise InputError(f"batch must return two tensors, x and y, got {format_value(type(rows).__name__)}")
        for name, old, new in zip("xy", (x, y), rows, strict=True):
            if new.shape[1:] != old.shape[1:] or len(new) != len(rows[0]):
                raise InputError(f"batch must return {name} as {tuple(old.shape)} or more rows, got {tuple(new.shape)}")
        return rows[0].to(x), rows[1].to(y)


def from_file(path: str, options: dict | None = None) -> Method:
    """Return the method of a file; options are arguments of its class, or of its function after the generator."""
    module, kwargs = load_module(Path(path)), dict(options or {})
    build = method_of(module)
    try:
        inspect.signature(build).bind(*([None] * 3 if build is vars(module).get("batch") else []), **kwargs)
    except TypeError as error:
        raise InputError(f"space of {path} does not suit {build.__name__}: {error}") from None
    method: Any = (
        build(**kwargs) if inspect.isclass(build) else BatchMethod(build, kwargs, space_combinations(space_of(module)))
    )
    return method


def load_module(path: Path) -> types.ModuleType:
    """Return the module of a file; the same as long as the file is the same."""
    if not path.is_file():
        raise InputError(f"method must be a file that is there, got {str(path)!r}")
    name = f"entry_{path.stem}_{sha256_of(path)[:12]}"
    if name not in sys.modules:
        spec: Any = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except Exception as error:
            del sys.modules[name]
            raise InputError(f"method {path} cannot be imported: {type(error).__name__}: {error}") from error
    return sys.modules[name]


def method_of(module: types.ModuleType) -> Callable[..., Any]:
    """Return the function `batch` or the one class of a module."""
    classes = [v for v in vars(module).values() if inspect.isclass(v) and v.__module__ == module.__name__]
    methods: list[Any] = [kind for kind in classes if issubclass(kind, Method)]
    methods += [module.batch] if inspect.isfunction(vars(module).get("batch")) else []
    if len(methods) != 1:
        has = ", ".join(method.__name__ for method in methods) or "neither"
        raise InputError(f"method {module.__file__} must have batch(x, y, rng) or one class that is a "
                         f"cmixup.training.method.Method, got {has}")  # fmt: skip
    return methods[0]


def space_of(module: types.ModuleType) -> dict[str, list[Any]]:
    """Return what a module lets be tuned: the values of each argument."""
    try:  # as the words of a run give it back: tuples are lists
        space: Any = json.loads(json.dumps(getattr(module, "space", {})))
    except TypeError as error:
        raise InputError(f"space of {module.__file__} must have Python's own numbers and words: {error}") from None
    if not (isinstance(space, dict) and all(isinstance(values, list) and values for values in space.values())):
        raise InputError(
            f"space of {module.__file__} must give a list of values for each argument, got {format_value(space)}"
        )
    return space


def space_combinations(space: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Return every combination of the values of a space."""
    return [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]


def with_entry(rules: Rules, method: str) -> tuple[Rules, str]:
    """Return the rules with one more method, a name of configs/method or the path of a file, and its name there."""
    known = option_names("method")
    if not method.endswith(".py"):
        if method not in known or method == BASE:
            least = f"one of {', '.join(name for name in known if name != BASE)} or the path of a .py file"
            raise InputError(f"method must be {least}, got {method!r}{near_hint(method, known)}")
        grid = part_file("method", method).get("grid", {})
        union = grid if isinstance(grid, list) else [grid]
        space = [{f"method.{key}": values for key, values in part.items()} for part in union]
        return with_method(rules, method, {"method": method, "space": space}), method
    path = Path(method)
    module, name = load_module(path), path.stem
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or name in {*known, *rules.methods}:
        raise InputError(f"method must be a file named as no other method, in a-z, 0-9 and _, got {path.name!r}")
    values = space_of(module)
    from_file(method, space_combinations(values)[0])
    fixed = {"method._target_": FROM_FILE, PATH: path.name}
    tuned = {f"+method.options.{key}": value for key, value in values.items()}
    return with_method(rules, name, {"method": BASE, "fixed": fixed, "space": tuned, "file": str(path.resolve())}), name


def with_method(rules: Rules, name: str, about: Mapping[str, Any]) -> Rules:
    """Return rules that have a method in all of their settings, as they say if they have it already."""
    conditions = (replace(c, methods=tuple(dict.fromkeys([*c.methods, name]))) for c in rules.conditions)
    return replace(rules, methods={name: about, **rules.methods}, conditions=tuple(conditions))
