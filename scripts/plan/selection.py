"""The cells of an experiment with their seeds and command lines, and where their runs are recorded."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf

from scripts.config.compose import TUNED_PRESETS, override_words
from scripts.records.experiment import Experiment


@dataclass(frozen=True)
class Point:
    """A change of a preset, by option, and its name on a page."""

    label: str
    options: dict[str, Any]


def points_of(experiment: Experiment, dataset: str, method: str) -> list[Point]:
    """Return an ablation's points of a dataset and method; a method without any has one that changes nothing."""
    points = []
    for entry in experiment.points:
        if method in entry.get("methods", [method]) and dataset in entry.get("datasets", [dataset]):
            grid = entry.get("grid", {})
            points += [Point(entry["label"], entry["options"])] if not grid else [
                Point(", ".join(map(option_text, grid, values)), dict(zip(grid, values, strict=True)))
                for values in itertools.product(*grid.values())
            ]  # fmt: skip
    return points or [Point("", {})]


def option_text(option: str, value: Any) -> str:
    """Return an option and its value as a page has them, such as "label scaling none"."""
    name = option.rpartition(".")[2].replace("_", " ")
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def swept_option(experiment: Experiment) -> tuple[str, str]:
    """Return the one method that has points and the one option that they change, or two empty words."""
    options = {option for entry in experiment.points for option in entry.get("grid", entry.get("options"))}
    methods = {method for entry in experiment.points for method in entry.get("methods", experiment.methods)}
    return (methods.pop(), options.pop()) if len(methods) == len(options) == 1 else ("", "")


def changes_preset(experiment: Experiment) -> bool:
    """Return whether points change the preset, which is `paper` then."""
    return any("preset" in entry.get("options", {}) for entry in experiment.points)


@dataclass(frozen=True)
class Choice:
    """What the command line narrows an experiment to."""

    datasets: list[str]
    methods: list[str]
    seeds: list[int]
    preset: str
    out: str
    device: str
    rerun: bool


def cell_commands(experiment: Experiment, choice: Choice, dataset: str, method: str) -> list[list[str]]:
    """Return the words of scripts.train of each job of a dataset and method but its seeds: one a point and layer."""
    words = [
        *experiment.overrides, f"dataset={dataset}", f"method={method}", f"preset={choice.preset}",
        f"experiment={recorded_under(experiment, method, dataset)}", "logger=none", f"out={choice.out}",
        f"device={choice.device}", f"rerun={str(choice.rerun).lower()}",
    ]  # fmt: skip
    both_layers = method in experiment.choose_layer and choice.preset not in TUNED_PRESETS  # whose layer is tuned
    layers = [["method.layer=input"], ["method.layer=hidden"]] if both_layers else [[]]
    points = points_of(experiment, dataset, method)
    return [[*words, *override_words(point.options), *layer] for point in points for layer in layers]


def recorded_under(experiment: Experiment, method: str, dataset: str) -> str:
    """Return the experiment that the runs of `method` on `dataset` are recorded under."""
    source = experiment.runs_from.get(method, experiment.name)
    return str(source.get(dataset, experiment.name) if isinstance(source, dict) else source)


def selected_methods(experiment: Experiment, dataset: str, methods: Sequence[str]) -> list[str]:
    """Return the ones among `methods` that are trained on `dataset`, each after the one that stands for it."""
    trained = [m for m in methods if m in experiment.methods_of.get(dataset, experiment.methods)]
    stand_in = experiment.paper_trains.get(dataset, {})
    return list(dict.fromkeys(method for m in trained for method in (stand_in.get(m, m), m)))


def shared_options(experiment: Experiment) -> dict[str, Any]:
    """Return the options that all runs of an experiment change, by key."""
    changed = OmegaConf.from_dotlist(list(experiment.overrides))
    return {key: OmegaConf.select(changed, key) for key in (word.partition("=")[0] for word in experiment.overrides)}
