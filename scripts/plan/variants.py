"""Variants of a preset, each with one thing changed, and the records of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from cmixup.errors import InputError
from scripts.config.compose import override_word
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
    found = []
    for entry in experiment.variants:
        unknown = set(entry) - {"label", "overrides", "sweep", "values", "datasets", "methods"}
        if unknown or ("sweep" in entry) == ("overrides" in entry):
            raise InputError(f"variants of {experiment.name} must have overrides or a sweep, got {entry!r}")
        each = [(entry["label"], tuple(entry["overrides"]))] if "overrides" in entry else [
            (f"{entry['sweep'].rpartition('.')[2]} {value:g}", (override_word(entry["sweep"], value),))
            for value in entry["values"]
        ]  # fmt: skip
        found += [
            Variant(label, dataset, method, changed)
            for dataset in entry.get("datasets", experiment.datasets)
            for method in entry.get("methods", experiment.methods)
            for label, changed in each
        ]
    return sorted(found, key=lambda v: (experiment.datasets.index(v.dataset), experiment.methods.index(v.method)))


def variant_identity(experiment: str, variant: Variant) -> dict[str, Any]:
    """Return the columns of records, with their values, by which a variant's runs are known.

    Composing each variant as its runs do would say the same (a test compares) and take seconds.
    """
    changed = {key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in variant.overrides)}
    preset = changed.pop("preset", "paper")
    return {"experiment": experiment, "dataset": variant.dataset, "method": variant.method, "preset": preset,
            "options": changed}  # fmt: skip
