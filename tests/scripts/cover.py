"""Which combinations of dataset, method and preset the tests try: their number grows with the sum, not the product."""

from __future__ import annotations

import yaml

from scripts.config import CONFIG_DIR, names

DATASETS, METHODS = names("dataset"), names("method")
PRESETS = ("paper", "released", "default")
TABULAR, LAZY = "no2", "exchange_rate"  # held in memory, and read on demand


def _says(group: str, name: str, text: str) -> bool:
    return text in (CONFIG_DIR / group / f"{name}.yaml").read_text()


# Datasets whose rows are tasks, and the methods for them: they go together only.
TASKS = [name for name in DATASETS if _says("dataset", name, "conv_maml")]
EPISODIC = [name for name in METHODS if _says("method", name, "inner_steps: ${dataset")]


def presets_of(dataset: str) -> dict[str, dict]:
    """Return a dataset's presets as its configuration has them."""
    return yaml.safe_load((CONFIG_DIR / "dataset" / f"{dataset}.yaml").read_text())["presets"]


def combinations() -> list[tuple[str, str, str]]:
    """Return every dataset with every preset, and every method with two of the datasets it is for."""
    found = {}
    for group, methods, pair in (
        ([d for d in DATASETS if d not in TASKS], [m for m in METHODS if m not in EPISODIC], (TABULAR, LAZY)),
        (TASKS, EPISODIC, tuple(TASKS[:1])),
    ):
        for k, dataset in enumerate(group):
            for p, preset in enumerate(presets_of(dataset)):
                found[dataset, methods[(len(PRESETS) * k + p) % len(methods)], preset] = None
        for k, method in enumerate(methods):
            for d, dataset in enumerate(pair):
                found[dataset, method, PRESETS[(k + d) % len(PRESETS)]] = None
    return list(found)


def trained() -> list[tuple[str, str, str]]:
    """Return the combinations that train: of the task datasets, which differ in their files alone, each one once."""
    tasks = [(TASKS[k % len(TASKS)], method, PRESETS[k % len(PRESETS)]) for k, method in enumerate(EPISODIC)]
    return [c for c in combinations() if c[0] not in TASKS] + tasks
