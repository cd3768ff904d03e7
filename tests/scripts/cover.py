"""Which combinations of dataset, method and preset the tests try: their number grows with the sum, not the product."""

from typing import Any

import pytest

from scripts.config.compose import option_names, part_file
from scripts.config.parts import dataset_class
from tests.helpers import method_kind, needs_images

DATASETS, METHODS = option_names("dataset"), option_names("method")
PRESETS = ("paper", "released", "default")
TABULAR, LAZY = "no2", "exchange_rate"  # held in memory, and read on demand
DOMAINS = "crime"  # has training domains
IMAGES = ("rcf_mnist", "poverty_map")  # inputs (C, H, W)


# Datasets whose rows are tasks, and the methods for them: they go together only.
TASKS = [name for name in DATASETS if dataset_class(name).tasks]
EPISODIC = [name for name in METHODS if method_kind(name).tasks]


def presets_of(dataset: str) -> dict[str, dict]:
    """Return a dataset's presets as its configuration has them."""
    return part_file("dataset", dataset)["presets"]


def _kinds() -> list[tuple[list[str], list[str], list[str], tuple[str, ...]]]:
    """Return datasets that go together, methods for them alone, all that suit them, and who meets the former."""
    rows = [d for d in DATASETS if d not in TASKS]
    of_images = [m for m in METHODS if needs_images(m)]
    anywhere = [m for m in METHODS if m not in [*EPISODIC, *of_images] and not method_kind(m).domains]
    with_domains = [m for m in METHODS if method_kind(m).domains]
    return [
        ([d for d in rows if not dataset_class(d).domains], anywhere, anywhere, (TABULAR, LAZY)),
        ([d for d in rows if dataset_class(d).domains], with_domains, [*anywhere, *with_domains], (DOMAINS,)),
        (list(IMAGES), of_images, of_images, IMAGES[:1]),
        (TASKS, EPISODIC, EPISODIC, tuple(TASKS[:1])),
    ]


def cover() -> list[tuple[str, str, str]]:
    """Return every dataset and every method once or more, with presets by turns: as few combinations as that takes."""
    chosen = {}
    for datasets, methods, _, _ in _kinds():
        for k in range(max(len(datasets), len(methods))):
            dataset = datasets[k % len(datasets)]
            presets = list(presets_of(dataset))
            chosen[dataset, methods[k % len(methods)], presets[k % len(presets)]] = None
    return list(chosen)


def cases() -> list[Any]:
    """Return every dataset with every preset, and every method with one or two of the datasets it is for.

    They are parameters of a test; those beyond each dataset's first are for the slow suite. Other tests train every
    method on small models, alone, as a stack, and interrupted.
    """
    chosen = dict.fromkeys(cover())
    for datasets, methods, suited, pair in _kinds():
        for k, dataset in enumerate(datasets):
            for p, preset in enumerate(presets_of(dataset)):
                chosen[dataset, suited[(len(PRESETS) * k + p) % len(suited)], preset] = None
        for k, method in enumerate(methods):
            for d, dataset in enumerate(pair):
                chosen[dataset, method, PRESETS[(k + d) % len(PRESETS)]] = None
    small = {dataset: (dataset, method, preset) for dataset, method, preset in reversed(cover())}.values()
    return [pytest.param(*case, marks=() if case in small else pytest.mark.slow) for case in chosen]
