"""What a table of the paper consists of, and how it is made from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from cmixup.errors import InputError
from cmixup.records import read_csv
from cmixup.tables import Block, Table, make_block
from scripts.config import CONFIG_DIR, arguments, names

RESULTS = CONFIG_DIR.parent / "results"


@dataclass(frozen=True)
class Experiment:
    """One file of configs/experiment: the cells of a table and how to show them."""

    name: str
    title: str
    paper_table: str
    setting: str
    datasets: list
    methods: list
    metrics: list
    compare: str
    fallback: str
    budget_minutes: float


def load_experiment(name: str) -> Experiment:
    """Read and check configs/experiment/<name>.yaml.

    Raises:
        InputError: no such experiment, or a key of it is unknown or of the wrong type.
    """
    path = CONFIG_DIR / "experiment" / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(names("experiment"))
        raise InputError(f"experiment must be one of {known}, got {name!r}")
    plain = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(plain, dict)
    node = {str(key): value for key, value in plain.items()}
    return Experiment(**arguments(f"experiment/{name}", node, Experiment), name=node["name"])


def paper_rows(experiment: Experiment, results: Path = RESULTS) -> list[dict[str, str]]:
    """Return the paper's numbers for this table."""
    rows = read_csv(results / "paper" / "results.csv")
    return [r for r in rows if r["table"] == experiment.paper_table and r["setting"] == experiment.setting]


def make_table(
    experiment: Experiment,
    records: Sequence[Mapping[str, Any]],
    preset: str,
    methods: Sequence[str] | None = None,
    missing: Sequence[str] = (),
) -> Table:
    """Return the table of one preset: a block for every dataset that has records."""
    mine = [r for r in records if r["experiment"] == experiment.name and r["preset"] == preset]
    paper = paper_rows(experiment)
    order = [*experiment.datasets, experiment.fallback]
    present = sorted({str(r["dataset"]) for r in mine}, key=order.index)
    chosen = methods or experiment.methods
    blocks: list[Block] = []
    for dataset in present:
        notes = [] if dataset in experiment.datasets else ["Not in the paper: a stand-in that ships with scikit-learn."]
        block = make_block(
            mine,
            paper,
            dataset=dataset,
            methods=chosen,
            metrics=experiment.metrics,
            compare=experiment.compare,
            notes=notes,
        )
        blocks.append(block)
    return Table(f"{experiment.title}, preset {preset}", blocks, experiment.compare, missing)
