"""A finished run, read back to predict new rows: `load_run(folder).predict(frame)`.

A run's folder holds the weights of its best epoch (`checkpoint.pt`), their model (`model.json`) and, of the user's own
data, how they become inputs (`preprocessing.json`). The classes that read them are imported when a run is loaded. Those
of own data and of `cmixup.networks` are part of the library. The wheel holds neither the other models nor the datasets
of the reproduction: load their runs in a checkout, or with one on PYTHONPATH.
"""

import importlib
import inspect
import json
import os
import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cmixup.errors import MAX_TEXT, InputError, check_count, check_flag, format_value
from cmixup.files import DONE, PREPROCESSING, READERS, checked, listed_files, read_tensors
from cmixup.seeding import torch_seed

WEIGHTS, MODEL = "checkpoint.pt", "model.json"
BATCH_SIZE = 4096  # rows that are predicted at a time
MODEL_FORMAT = "cmixup model 1"  # first key of MODEL
KNOWN = ("cmixup", "datasets", "models")  # packages whose classes a run may name


@dataclass(frozen=True)
class SavedRun:
    """A run's model with its best weights, ready to predict."""

    folder: Path
    model: nn.Module = field(repr=False)  # on its device, in evaluation mode
    in_shape: tuple[int, ...]  # of one input
    preprocessing: Any = field(repr=False)  # `cmixup.inputs.preprocessing.Preprocessing`; None if the run keeps none
    shift: Tensor = field(repr=False)  # as the scale (1, d_y), by which the network's outputs become labels
    scale: Tensor = field(repr=False)
    width: int  # d_y; of `train.loss=gaussian` the network has as many outputs more

    def predict(self, rows: Any, batch_size: int | None = None, source: str = "", *, scaled: bool = False) -> Any:
        """Return the predictions for new rows.

        Args:
            rows: of the data that the run knows, in the units of its file. Of a table or series a pandas data frame, a
                dict of columns or a list of dicts, whose columns are found by name: their order does not matter, and
                others are ignored. A list or array of numbers has the columns that the run reads, in their order. Of
                arrays a list, tuple or array `(N, *in_shape)`. Of images paths. A run that keeps no preprocessing takes
                inputs as the model reads them.
            batch_size: rows at a time, 1 or more; None is 4096, or fewer of inputs that are read from files.
            source: how errors call the rows, such as "table".
            scaled: whether the rows are inputs as the model reads them, `(N, *in_shape)`: a tensor, array or list.

        Returns:
            A data frame with a column for every target, in the target's own unit (`log_target` is undone); of a table
            it has the index of `rows`. For inputs a tensor `(N, d_y)` float32 on the CPU. On the rows of the run both
            are its own predictions up to rounding: a run that was trained in a stack was scored by batched kernels. Of
            a run with `train.loss=gaussian` they are the means.

        Raises:
            InputError: columns that are missing, a cell that is no number where one belongs, inputs of another shape or
                kind.
        """
        if batch_size is not None:
            check_count("batch_size", batch_size, 1)
        preprocessing = self.preprocessing
        if check_flag("scaled", scaled) or preprocessing is None:
            return self._forward(rows, batch_size)
        rows = preprocessing.as_given(rows)
        inputs = preprocessing.apply(rows, source) if source else preprocessing.apply(rows)
        return preprocessing.predictions(rows, self._forward(inputs, batch_size).numpy())

    def _forward(self, inputs: Any, batch_size: int | None) -> Tensor:
        if hasattr(inputs, "batch_size"):  # they are read from files
            return self._outputs(inputs, batch_size or inputs.batch_size)
        shape = f"({', '.join(['N', *map(str, self.in_shape)])})"
        try:
            x = torch.as_tensor(inputs, dtype=torch.float32)
        except (TypeError, ValueError, RuntimeError):
            expected = f"what run {self.folder} was trained on, or inputs of shape {shape}"
            raise InputError(f"rows must be {expected}, got {type(inputs).__name__}") from None
        if tuple(x.shape[1:]) != self.in_shape or not x.ndim:
            raise InputError(f"rows must have shape {shape}, got {tuple(x.shape)}")
        if x.layout != torch.strided or x.is_meta:
            raise InputError(f"rows must be dense and have values, got {x.layout} on {x.device}")
        if not bool(torch.isfinite(x).all()):
            raise InputError("rows must be finite numbers, got NaN or infinity")
        return self._outputs(x, batch_size or BATCH_SIZE)

    def _outputs(self, x: Any, batch_size: int) -> Tensor:
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        batches = torch.split(torch.arange(len(x)), batch_size)  # a table without rows gives one empty batch
        with torch.no_grad():
            outputs = torch.cat([self.model(x[rows].to(device)).float().cpu() for rows in batches])
        return outputs[:, : self.width] * self.scale + self.shift


def load_run(folder: str | Path, device: torch.device | str = "cpu", *, trust: bool = False) -> SavedRun:
    """Return a finished run, ready to predict.

    Weights are read as tensors alone (`weights_only=True`). The files next to them name classes of this project, which
    are imported; a class of any other module is refused.

    Args:
        folder: of one run, such as `outputs/runs/adhoc/airfoil/fcn3/cmixup/default/seed=0`.
        device: where the model goes.
        trust: whether classes of other modules are imported, too. Their code runs: ask for it where you trust the run.

    Raises:
        InputError: no path, no such device, no finished run there; a file that is damaged; weights that were not kept
            or do not fit; a run of an earlier version or on tasks; a class of another module without `trust`; a class
            that cannot be imported.
    """
    check_flag("trust", trust)
    try:
        folder = Path(folder)
    except TypeError:
        raise InputError(f"folder must be a path, got {format_value(folder)}") from None
    run_device = usable_device(device)
    if not os.path.isfile(folder / DONE):  # noqa: PTH113, a name that is too long is none
        raise InputError(f"run {folder} is not a finished run's folder: it holds no {DONE}")
    if not (folder / MODEL).is_file():
        raise InputError(f"run {folder} has no {MODEL}: an earlier version made it; train it again with rerun=true")
    config = _read_json(folder / MODEL)
    if config.get("tasks"):
        raise InputError(f"run {folder} was trained on tasks: it predicts from a support, which predict does not take")
    if not (folder / WEIGHTS).is_file():
        raise InputError(f"run {folder} has no {WEIGHTS}: it was trained with weights=false")
    run, preprocessing = _read_model(folder, config, trust=trust), None
    if (path := folder / PREPROCESSING).is_file():
        reader = READERS[_read_json(path, tuple(READERS))["format"]]
        preprocessing = _import_object(reader, path, trust=False).from_json(checked(path).read_bytes(), str(path))
        if (preprocessing.in_shape, len(preprocessing.targets)) != (run.in_shape, run.width):
            raise InputError(f"{path} is of other data than {MODEL}: {format_value(preprocessing.targets)}")
    elif PREPROCESSING in listed_files(folder):  # without it new rows would be taken as scaled ones
        raise InputError(f"run {folder} has no {PREPROCESSING}, which its {DONE} lists: copy the whole folder")
    return replace(run, model=run.model.to(run_device).eval(), preprocessing=preprocessing)


def _read_model(folder: Path, config: Mapping[str, Any], *, trust: bool) -> SavedRun:
    """Return a run without preprocessing: its model with weights, and mean and standard deviation of scaled labels."""
    try:
        in_shape, width, model = tuple(config["in_shape"]), config["out_features"], _make_model(config, folder, trust)
        scaling = config.get("label_scaling") or {"mean": [0.0], "std": [1.0]}
        shift, scale = (torch.tensor([scaling[key]], dtype=torch.float32) for key in ("mean", "std"))
        if {shift.shape, scale.shape} - {(1, 1), (1, width)}:
            raise InputError(f"label_scaling must be numbers of every label, got {format_value(scaling)}")
        model.load_state_dict(read_tensors(checked(folder / WEIGHTS)))
        if not all(bool(value.isfinite().all()) for value in (shift, scale, *model.state_dict().values())):
            raise InputError(f"run {folder}: {WEIGHTS} or {MODEL} holds numbers that are not finite")
    except InputError as error:
        if str(folder) in str(error):
            raise
        raise InputError(f"{folder / MODEL}: {error}") from None
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"run {folder}: {WEIGHTS} does not hold the weights of {MODEL}: {reason}") from None
    return SavedRun(folder, model, in_shape, None, shift, scale, width)


def _make_model(config: Mapping[str, Any], folder: Path, trust: bool) -> nn.Module:
    options = {key: value for key, value in config["model"].items() if key not in ("_target_", "name")}
    function = _import_object(config["model"]["_target_"], folder / MODEL, trust=trust)
    model_class = function if inspect.isclass(function) else typing.get_type_hints(function).get("return")
    if not (inspect.isclass(model_class) and issubclass(model_class, nn.Module)):  # before anything is called
        raise InputError(f"{folder / MODEL} must name a model, got {config['model']['_target_']!r}")
    with torch_seed(0):  # its first weights are drawn, and replaced
        model = function(tuple(config["in_shape"]), config["out_features"] * config.get("outputs", 1), **options)
    assert isinstance(model, nn.Module)
    return model


def _import_object(name: str, source: Path, *, trust: bool) -> Any:
    """Return the class or function of this name; `source` is the file that names it."""
    module, _, attribute = name.rpartition(".")
    package = name.partition(".")[0]
    if not trust and package not in KNOWN:
        problem = f"{source} names {name[:MAX_TEXT]}, which is no class of this project"
        raise InputError(f"{problem}: trust=True imports it, and runs its code")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, SystemExit) as error:
        advice = "load the run in a checkout of cmixup, or with one on PYTHONPATH; the wheel holds the library alone"
        if (package_file := getattr(sys.modules.get(package), "__file__", None)) and package in KNOWN[1:]:
            advice += f"; here {package} is {package_file}, which must be that of the checkout"
        problem = f"{source} names {name[:MAX_TEXT]}, which cannot be imported here ({str(error)[:MAX_TEXT]})"
        raise InputError(f"{problem}: {advice}") from None


def _read_json(path: Path, formats: tuple[str, ...] = (MODEL_FORMAT,)) -> dict[str, Any]:
    text = checked(path).read_bytes()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):  # also of bytes that are no text
        content = None
    if not isinstance(content, dict) or content.get("format") not in formats:
        raise InputError(f"{path} does not hold what a run keeps there ({', '.join(formats)})")
    return content


def usable_device(device: Any) -> torch.device:
    """Return a device that can hold a model, or raise `InputError`."""
    try:
        candidate = torch.device(device)
        torch.empty(0, device=candidate)
        if candidate.type != "meta":
            return candidate
    except (RuntimeError, TypeError, AssertionError, NotImplementedError, ValueError):
        pass
    raise InputError(f"device must be one that this machine has, such as cpu or cuda:0, got {format_value(device)}")
