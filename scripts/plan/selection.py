"""What an experiment asks for: its cells with their seeds and command lines, and where their runs are recorded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
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
    """Return the rows of every dataset and method, in the order of the file; a sweep is a row a value."""
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
        seeds: those that are trained, unless they are published already.
        words: of the command line of `scripts.train` that all of its jobs share.
        changes: what each of its jobs changes of the preset, in words; a job without any changes nothing.
        swept: whether these are the values of a sweep.
    """

    dataset: str
    method: str
    seeds: list[int]
    words: list[str]
    changes: list[list[str]]
    swept: bool


def selected_cells(experiment: Experiment, choice: Choice) -> Iterator[SelectedCell]:
    """Yield the cells that a choice leaves of an experiment, a dataset after another."""
    for dataset in choice.datasets:
        for method in selected_methods(experiment, dataset, choice.methods):
            words = [
                *experiment.overrides, f"dataset={dataset}", f"method={method}", f"preset={choice.preset}",
                f"experiment={recorded_under(experiment, method, dataset)}", "logger=none", f"out={choice.out}",
                f"device={choice.device}", f"rerun={str(choice.rerun).lower()}",
            ]  # fmt: skip
            seeds, changes = selected_seeds(experiment, dataset, choice.seeds), [list[str]()]
            values = swept_values(experiment, dataset, method)
            if experiment.variants:
                mine = [v for v in variant_rows(experiment) if (v.dataset, v.method) == (dataset, method)]
                changes = [list(v.overrides) for v in mine]
            elif points := grid_points(experiment, dataset):
                changes = [override_words(point) for point in points]
            elif values:
                changes = [[override_word(experiment.sweep["option"], value)] for value in values]
            if method in experiment.choose_layer and choice.preset not in TUNED_PRESETS:  # whose layer is tuned
                changes = [[*change, f"method.layer={layer}"] for change in changes for layer in ("input", "hidden")]
            yield SelectedCell(dataset, method, seeds, words, changes, bool(values))


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
