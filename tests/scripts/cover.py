"""Which combinations of dataset, method and preset the tests try: their number grows with the sum, not the product."""

from __future__ import annotations

from scripts.config import names

DATASETS, METHODS = names("dataset"), names("method")
PRESETS = ("paper", "released", "default")
TABULAR, LAZY = "no2", "exchange_rate"  # held in memory, and read on demand


def combinations() -> list[tuple[str, str, str]]:
    """Return every dataset with every preset, and every method with a tabular and a lazily read dataset."""
    found = {}
    for k, dataset in enumerate(DATASETS):
        for p, preset in enumerate(PRESETS):
            found[dataset, METHODS[(len(PRESETS) * k + p) % len(METHODS)], preset] = None
    for k, method in enumerate(METHODS):
        for d, dataset in enumerate((TABULAR, LAZY)):
            found[dataset, method, PRESETS[(k + d) % len(PRESETS)]] = None
    return list(found)
