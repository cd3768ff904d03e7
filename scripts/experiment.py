"""What a table of the paper consists of, and how it is made from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from cmixup.errors import InputError
from cmixup.names import METHODS, display
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
    choose_layer: list
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


def layer_notes(records: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> list[str]:
    """Return a sentence that says where each method mixes."""
    layers = {str(r["method"]): str(r["layer"]) for r in records if r["layer"]}
    parts = [f"{display(METHODS, method)} {layers[method]}" for method in methods if method in layers]
    return [f"Mixed at: {', '.join(parts)}."] if parts else []


def make_table(
    experiment: Experiment,
    records: Sequence[Mapping[str, Any]],
    preset: str,
    methods: Sequence[str] | None = None,
    missing: Sequence[str] = (),
) -> Table:
    """Return the table of one preset: a block for every dataset that has records.

    Args:
        experiment: which table.
        records: tidy rows.
        preset: which of them.
        methods: its rows; default all of the experiment.
        missing: lines on what is not in it.
    """
    mine = [r for r in records if r["experiment"] == experiment.name and r["preset"] == preset]
    paper = paper_rows(experiment)
    order = [*experiment.datasets, experiment.fallback]
    present = sorted({str(r["dataset"]) for r in mine}, key=order.index)
    chosen = methods or experiment.methods
    blocks: list[Block] = []
    for dataset in present:
        notes = layer_notes([r for r in mine if r["dataset"] == dataset], chosen)
        if dataset not in experiment.datasets:
            notes.append("Not in the paper: a stand-in that ships with scikit-learn.")
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
