"""What an experiment asks for: its cells with their seeds and command lines, and where their runs are recorded."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from omegaconf import OmegaConf

from cmixup.errors import InputError
from scripts.config.compose import TUNED_PRESETS, override_word, override_words
from scripts.records.experiment import Experiment


@dataclass(frozen=True)
class Variant:
    """One row: a cell with what is changed of preset `paper`."""

    label: str
    dataset: str
    method: str
    overrides: tuple[str, ...]


def variant_rows(experiment: Experiment) -> list[Variant]:
    """Return the rows of every dataset and method, in the order of the file; a sweep is a row a value.

    Raises:
        InputError: an entry with an unknown key, or neither overrides nor a sweep.
    """
    rows = []
    for entry in experiment.variants:
        unknown = set(entry) - {"label", "overrides", "sweep", "values", "datasets", "methods"}
        if unknown or ("sweep" in entry) == ("overrides" in entry):
            raise InputError(f"variants of {experiment.name} must have overrides or a sweep, got {entry!r}")
        points = [(entry["label"], tuple(entry["overrides"]))] if "overrides" in entry else [
            (f"{entry['sweep'].rpartition('.')[2]} {value:g}", (override_word(entry["sweep"], value),))
            for value in entry["values"]
        ]  # fmt: skip
        rows += [
            Variant(label, dataset, method, changed)
            for dataset in entry.get("datasets", experiment.datasets)
            for method in entry.get("methods", experiment.methods)
            for label, changed in points
        ]
    return sorted(rows, key=lambda v: (experiment.datasets.index(v.dataset), experiment.methods.index(v.method)))


def variant_identity(experiment: str, variant: Variant) -> dict[str, Any]:
    """Return the columns of records, with their values, by which a variant's runs are known.

    Composing each variant as its runs do would say the same (a test compares) and take seconds.
    """
    changed = {key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in variant.overrides)}
    preset = changed.pop("preset", "paper")
    return {"experiment": experiment, "dataset": variant.dataset, "method": variant.method, "preset": preset,
            "options": changed}  # fmt: skip


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


@dataclass(frozen=True)
class SelectedCell:
    """A dataset and a method of an experiment.

    Attributes:
        dataset, method: their names.
        recorded: the experiment that its runs are recorded under.
        seeds: those that are trained, unless they are published already.
        changes: what each of its jobs changes of the preset, an override on each line; "" changes nothing.
        swept: whether these are the values of a sweep.
        shared: the options that all runs of the experiment change.
    """

    dataset: str
    method: str
    recorded: str
    seeds: list[int]
    changes: list[str]
    swept: bool
    shared: list[str]

    def command(self, choice: Choice, change: str = "", seeds: Sequence[int] = ()) -> list[str]:
        """Return the command line of `scripts.train` for one of `changes`, by default for all seeds."""
        return [
            *self.shared,
            f"dataset={self.dataset}", f"method={self.method}", f"preset={choice.preset}",
            f"experiment={self.recorded}", f"seeds=[{','.join(map(str, seeds or self.seeds))}]", "logger=none",
            f"out={choice.out}", f"device={choice.device}", f"rerun={str(choice.rerun).lower()}", *change.splitlines(),
        ]  # fmt: skip


def selected_cells(experiment: Experiment, choice: Choice) -> list[SelectedCell]:
    """Return the cells that a choice leaves of an experiment, a dataset after another."""
    return [
        SelectedCell(
            dataset,
            method,
            recorded_under(experiment, method, dataset),
            selected_seeds(experiment, dataset, choice.seeds),
            _cell_changes(experiment, choice.preset, dataset, method),
            bool(swept_values(experiment, dataset, method)),
            list(experiment.overrides),
        )
        for dataset in choice.datasets
        for method in selected_methods(experiment, dataset, choice.methods)
    ]


def _cell_changes(experiment: Experiment, preset: str, dataset: str, method: str) -> list[str]:
    """Return what is changed of a preset, a job each: a variant, layer, swept option or cell of a grid."""
    if experiment.variants:
        mine = [v for v in variant_rows(experiment) if (v.dataset, v.method) == (dataset, method)]
        return ["\n".join(v.overrides) for v in mine]
    if points := grid_points(experiment, dataset):
        return ["\n".join(override_words(point)) for point in points]
    values = [override_word(experiment.sweep["option"], value) for value in swept_values(experiment, dataset, method)]
    # A tuned preset has its layer, chosen on validation with everything else.
    both = method in experiment.choose_layer and preset not in TUNED_PRESETS
    layers = ["method.layer=input", "method.layer=hidden"] if both else [""]
    return ["\n".join(filter(None, pair)) for pair in itertools.product(values or [""], layers)]


def recorded_under(experiment: Experiment, method: str, dataset: str) -> str:
    """Return the experiment that the runs of `method` on `dataset` are recorded under."""
    source = experiment.runs_from.get(method, experiment.name)
    return str(source.get(dataset, experiment.name) if isinstance(source, dict) else source)


def swept_values(experiment: Experiment, dataset: str, method: str) -> list[Any]:
    """Return the values of the swept option that `method` is trained with; empty if it is trained as its preset."""
    sweep = experiment.sweep
    return list(sweep["values"][dataset]) if sweep and method == sweep["method"] else []


def selected_seeds(experiment: Experiment, dataset: str, seeds: Sequence[int]) -> list[int]:
    """Return those of `seeds` that are trained on `dataset`."""
    return list(seeds[: experiment.seeds_of.get(dataset)])


def grid_points(experiment: Experiment, dataset: str) -> list[dict[str, Any]]:
    """Return every combination of an ablation grid's options on `dataset`, by option; empty if it is none."""
    grid = experiment.grid_of.get(dataset, experiment.grid)
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] if grid else []


def selected_methods(experiment: Experiment, dataset: str, methods: Sequence[str]) -> list[str]:
    """Return the ones among `methods` that are trained on `dataset`, each after the one that stands for it."""
    mine = [m for m in methods if m in experiment.methods_of.get(dataset, experiment.methods)]
    stand_in = experiment.paper_trains.get(dataset, {})
    return list(dict.fromkeys(method for m in mine for method in (stand_in.get(m, m), m)))


def shared_options(experiment: Experiment) -> dict[str, Any]:
    """Return the options that all runs of an experiment change, by key."""
    changed = OmegaConf.from_dotlist(list(experiment.overrides))
    return {key: OmegaConf.select(changed, key) for key in (word.partition("=")[0] for word in experiment.overrides)}
