"""Which combinations of dataset, method and preset the tests try: their number grows with the sum, not the product."""

from __future__ import annotations

import yaml

from cmixup.methods.base import Method
from scripts.driver.config import CONFIG_DIR, Part, dataset_class, names, target

DATASETS, METHODS = names("dataset"), names("method")
PRESETS = ("paper", "released", "default")
TABULAR, LAZY = "no2", "exchange_rate"  # held in memory, and read on demand
DOMAINS = "crime"  # has training domains


def has_domains(dataset: str) -> bool:
    """Whether the dataset has training domains."""
    return dataset_class(dataset).domains


def method_kind(method: str) -> type[Method]:
    """The class of what a method's configuration builds; it says which data it is for."""
    return Part(target(yaml.safe_load((CONFIG_DIR / "method" / f"{method}.yaml").read_text())), {}).kind


def needs_domains(method: str) -> bool:
    """Whether the method refuses a dataset without training domains."""
    return method_kind(method).domains


# Datasets whose rows are tasks, and the methods for them: they go together only.
TASKS = [name for name in DATASETS if dataset_class(name).tasks]
EPISODIC = [name for name in METHODS if method_kind(name).tasks]


def presets_of(dataset: str) -> dict[str, dict]:
    """Return a dataset's presets as its configuration has them."""
    return yaml.safe_load((CONFIG_DIR / "dataset" / f"{dataset}.yaml").read_text())["presets"]


def combinations(*, every_preset: bool = True) -> list[tuple[str, str, str]]:
    """Return every dataset with every preset, and every method with two of the datasets it is for.

    Methods that need domains go with datasets that have them, methods for tasks with datasets of tasks.

    Args:
        every_preset: otherwise each dataset comes with one of them.
    """
    found = {}
    rows = [d for d in DATASETS if d not in TASKS]
    anywhere = [m for m in METHODS if m not in EPISODIC and not needs_domains(m)]
    for datasets, methods, pair in (
        ([d for d in rows if not has_domains(d)], anywhere, (TABULAR, LAZY)),
        ([d for d in rows if has_domains(d)], [m for m in METHODS if m not in EPISODIC], (DOMAINS,)),
        (TASKS, EPISODIC, tuple(TASKS[:1])),
    ):
        for k, dataset in enumerate(datasets):
            for p, preset in enumerate(presets_of(dataset)):
                if every_preset or p == k % len(PRESETS):
                    found[dataset, methods[(len(PRESETS) * k + p) % len(methods)], preset] = None
        for k, method in enumerate(methods):
            if pair == (DOMAINS,) and method in anywhere:
                continue
            for d, dataset in enumerate(pair):
                found[dataset, method, PRESETS[(k + d) % len(PRESETS)]] = None
    return list(found)


def trained() -> list[tuple[str, str, str]]:
    """Return the combinations that train: a part of those that are planned, still every dataset and every method."""
    return combinations(every_preset=False)
