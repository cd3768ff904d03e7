"""Which combinations of dataset, method and preset the tests try: their number grows with the sum, not the product."""

from __future__ import annotations

import inspect
import typing

import yaml

from scripts.config import CONFIG_DIR, names, target

DATASETS, METHODS = names("dataset"), names("method")
PRESETS = ("paper", "released", "default")
TABULAR, LAZY = "no2", "exchange_rate"  # held in memory, and read on demand
DOMAINS = "crime"  # has training domains


def has_domains(dataset: str) -> bool:
    """Whether the dataset has training domains: its config then says how many make a batch."""
    return "groups" in yaml.safe_load((CONFIG_DIR / "dataset" / f"{dataset}.yaml").read_text())


def needs_domains(method: str) -> bool:
    """Whether the method refuses a dataset without training domains."""
    made = target(yaml.safe_load((CONFIG_DIR / "method" / f"{method}.yaml").read_text()))
    kind = made if inspect.isclass(made) else typing.get_type_hints(made)["return"]
    return kind.needs_domains


def combinations() -> list[tuple[str, str, str]]:
    """Return every dataset with every preset, and every method with a tabular and a lazily read dataset.

    Methods that need domains are tried with datasets that have them.
    """
    found = {}
    anywhere = [method for method in METHODS if not needs_domains(method)]
    for k, dataset in enumerate(DATASETS):
        methods = METHODS if has_domains(dataset) else anywhere
        for p, preset in enumerate(PRESETS):
            found[dataset, methods[(len(PRESETS) * k + p) % len(methods)], preset] = None
    for k, method in enumerate(METHODS):
        for d, dataset in enumerate((TABULAR, LAZY) if method in anywhere else (DOMAINS,)):
            found[dataset, method, PRESETS[(k + d) % len(PRESETS)]] = None
    return list(found)
