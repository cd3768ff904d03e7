"""What a table of the paper consists of, and how it is made from records."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from cmixup.errors import InputError
from scripts.driver.compose import CONFIG_DIR, read_part
from scripts.driver.compose import names as options
from scripts.driver.config import arguments
from scripts.driver.runs import LEARNED_NOTHING
from scripts.records import names
from scripts.records.ranks import rank_lines
from scripts.records.records import read_csv
from scripts.records.tables import Block, ResultTable, make_block

RESULTS = CONFIG_DIR.parent / "results"
NOT_PUBLISHED = ("adhoc", "debug", "tune")  # names of runs that belong to no table or figure


@dataclass(frozen=True)
class Experiment:
    """One file of configs/experiment: the cells of a table or figure and how to show them.

    Attributes:
        name: its file, and the column `experiment` of its records.
        title: of the table or figure.
        datasets, methods: its cells.
        budget_minutes: a cell that would take longer here is not trained, and its command is printed.
        seeds: how many seeds are trained if the command line does not say.
        methods_of: other methods for some of the datasets.
        paper_trains: for some of the datasets, which of our methods the paper trains there under another's name; it has
            that one's numbers, and the method of that name is an extra row.
        overrides: options of scripts.train that all its runs share.
        runs_from: for methods that another experiment trains already, its name, or its name by dataset.
        choose_layer: methods trained at both layers; the layer with the better validation score is reported.
        paper_methods: for names of the paper's rows that are no method's title, which of our methods they mean; where
            there are several ("ERM/MAML"), the one that is trained on the dataset.
        paper_table, setting: rows of results/paper/results.csv to compare with; spaces separate several settings.
        metrics: columns of the table.
        metrics_of: other columns for some of the datasets.
        compare: the method whose paired differences to the others are printed.
        fallback: the dataset that is trained if none of `datasets` can be had.
        cpu_preset: the preset on a machine without a GPU, if the command line does not name one.
        about_preset: what the title of a table says about a preset.
        notes: sentences below the table.
        variants: rows of an ablation, see scripts.ablation; empty for others.
        page: file of results/ that the rows of an ablation are put into.
        figure: function of scripts.report.figures that draws it from the curves of its runs; empty for tables.
        sweep: of a figure over an option: `option`, its key; `method`, which is trained with each of its `values` (by
            dataset); `limits: true` where the smallest value stands for the first of the other methods and the largest
            for the second.
        grid: of a ladder, options with lists of values: every method is trained with all combinations.
        grid_of: other grids, of the same options, for some of the datasets.
        seeds_of: of some of the datasets, how many seeds are trained at most: the first of those asked for.
        account: of a ladder, which gains are split into parts, see `scripts.report.ladder`.
    """

    name: str
    title: str
    datasets: list
    methods: list
    budget_minutes: float
    seeds: int = 10
    methods_of: dict = field(default_factory=dict)
    paper_trains: dict = field(default_factory=dict)
    overrides: list = field(default_factory=list)
    runs_from: dict = field(default_factory=dict)
    choose_layer: list = field(default_factory=list)
    paper_methods: dict = field(default_factory=dict)
    paper_table: str = ""
    setting: str = ""
    metrics: list = field(default_factory=list)
    metrics_of: dict = field(default_factory=dict)
    compare: str = ""
    fallback: str = ""
    cpu_preset: str = ""
    about_preset: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    variants: list = field(default_factory=list)
    page: str = ""
    figure: str = ""
    sweep: dict = field(default_factory=dict)
    grid: dict = field(default_factory=dict)
    grid_of: dict = field(default_factory=dict)
    seeds_of: dict = field(default_factory=dict)
    account: dict = field(default_factory=dict)

    def recorded_under(self, method: str, dataset: str) -> str:
        """Return the experiment that the runs of `method` on `dataset` are recorded under."""
        found = self.runs_from.get(method, self.name)
        return str(found.get(dataset, self.name) if isinstance(found, dict) else found)

    def swept(self, dataset: str, method: str) -> list[Any]:
        """Return the values of the swept option that `method` is trained with; empty if it is trained as its preset."""
        return list(self.sweep["values"][dataset]) if self.sweep and method == self.sweep["method"] else []

    def seeds_for(self, dataset: str, seeds: Sequence[int]) -> list[int]:
        """Return those of `seeds` that are trained on `dataset`."""
        return list(seeds[: self.seeds_of.get(dataset)])

    def points(self, dataset: str) -> list[dict[str, Any]]:
        """Return every combination of a ladder's options on `dataset`, by option; empty if it is none."""
        grid = self.grid_of.get(dataset, self.grid)
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] if grid else []

    def methods_for(self, dataset: str, methods: Sequence[str]) -> list[str]:
        """Return the ones among `methods` that this experiment trains on `dataset`, each after what stands for it."""
        mine = [m for m in methods if m in self.methods_of.get(dataset, self.methods)]
        stand_in = self.paper_trains.get(dataset, {})
        return list(dict.fromkeys(each for m in mine for each in (stand_in.get(m, m), m)))

    def stands_for(self, dataset: str, method: str) -> str:
        """Return which of our methods the paper's row of `method` is about on `dataset`."""
        return str(self.paper_trains.get(dataset, {}).get(method, method))

    def own_options(self) -> dict[str, Any]:
        """Return the options that all its runs change, by key."""
        changed = OmegaConf.from_dotlist(list(self.overrides))
        return {key: OmegaConf.select(changed, key) for key in (word.partition("=")[0] for word in self.overrides)}

    def records_of(self, records: pd.DataFrame, preset: str) -> pd.DataFrame:
        """Return the records of one preset that this experiment shows."""
        mine = records[records["preset"] == preset]
        pairs = list(zip(mine["method"], mine["dataset"], strict=True))
        where = {pair: self.recorded_under(*pair) for pair in set(pairs)}
        return mine[mine["experiment"] == [where[pair] for pair in pairs]]


def load_experiment(name: str) -> Experiment:
    """Read and check configs/experiment/<name>.yaml.

    Raises:
        InputError: no such experiment, or a key of it is unknown or of the wrong type.
    """
    path = CONFIG_DIR / "experiment" / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(options("experiment"))
        raise InputError(f"experiment must be one of {known}, got {name!r}")
    node = read_part(path)
    found = Experiment(**arguments(f"experiment/{name}", node, Experiment), name=node["name"])
    if found.sweep:
        _check_sweep(found)
    return found


def _check_sweep(experiment: Experiment) -> None:
    """Raise `InputError` unless a sweep names an option, a method and two values or more for every dataset."""
    where, sweep = f"experiment/{experiment.name}.sweep", experiment.sweep
    needed, known = ("option", "method", "values"), ("option", "method", "values", "limits")
    if set(sweep) - set(known) or set(needed) - set(sweep):
        raise InputError(f"{where} takes {', '.join(known)} and needs the first three, got {', '.join(sweep)}")
    if sweep["method"] not in experiment.methods:
        raise InputError(f"{where}.method must be among {', '.join(experiment.methods)}, got {sweep['method']!r}")
    for dataset in experiment.datasets:
        values = sweep["values"].get(dataset, [])
        if len(values) < 2 or len({str(v) for v in values}) < len(values):
            raise InputError(f"{where}.values.{dataset} must be two different values or more, got {values!r}")


def experiments() -> list[Experiment]:
    """Return every table and figure, in order of their names."""
    return [load_experiment(name) for name in options("experiment") if name not in NOT_PUBLISHED]


def paper_rows(experiment: Experiment, results: Path = RESULTS) -> list[dict[str, str]]:
    """Return the paper's numbers for this table, with our spellings of dataset, method and metric.

    The worst domain is a setting in the paper's file and a metric of ours.

    Raises:
        InputError: a row names a dataset, method or metric that is none of ours.
    """
    rows = [
        r
        for r in read_csv(results / "paper" / "results.csv")
        if r["table"] == experiment.paper_table and r["setting"] in experiment.setting.split()
    ]
    datasets = {r["dataset"]: names.spelling("dataset", r["dataset"], experiment.datasets) for r in rows}
    return [
        {
            **r,
            "dataset": datasets[r["dataset"]],
            "method": experiment.stands_for(datasets[r["dataset"]], _method(experiment, datasets[r["dataset"]], r)),
            "metric": ("worst_" if r["setting"] == "ood-worst" else "") + names.metric_spelling(r["metric"]),
        }
        for r in rows
    ]


def _method(experiment: Experiment, dataset: str, row: Mapping[str, str]) -> str:
    """Return which of our methods a row of the paper is about on a dataset."""
    here = experiment.methods_of.get(dataset, experiment.methods)
    meant = [method for method in experiment.paper_methods.get(row["method"], []) if method in here]
    return str(meant[0]) if meant else names.spelling("method", row["method"], here)


def layer_notes(records: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Return a sentence that says where each method mixes."""
    layers = {m: sorted(set(records["layer"][records["method"] == m]) - {""}) for m in methods}
    parts = [f"{names.method_title(method)} {' and '.join(found)}" for method, found in layers.items() if found]
    return [f"Mixed at: {', '.join(parts)}."] if parts else []


def nothing_learned_notes(records: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Return a sentence that names methods and seeds with runs that learned nothing."""
    found = records[records["metric"] == LEARNED_NOTHING]
    seeds = {m: sorted(set(found["seed"][found["method"] == m])) for m in methods}
    parts = [f"{names.method_title(m)} (seeds {', '.join(map(str, s))})" for m, s in seeds.items() if s]
    said = "By validation no better than the mean of the training labels"
    return [f"{said}: {', '.join(parts)}."] if parts else []


def make_table(
    experiment: Experiment,
    records: pd.DataFrame,
    preset: str,
    methods: Sequence[str] | None = None,
    missing: Sequence[str] = (),
) -> ResultTable:
    """Return the table of one preset: a block for every dataset that has records.

    Args:
        experiment: which table.
        records: of any experiments and presets.
        preset: which of them.
        methods: its rows; default all of the experiment.
        missing: lines on what is not in it.
    """
    mine = experiment.records_of(records, preset)
    paper = paper_rows(experiment)
    known = {r["dataset"] for r in read_csv(RESULTS / "paper" / "results.csv")}
    order = [*experiment.datasets, experiment.fallback]
    present = names.in_order((d for d in mine["dataset"].unique() if d in order), order)
    chosen = methods or experiment.methods
    blocks: list[Block] = []
    for dataset in present:
        rows = experiment.methods_for(dataset, chosen)
        own = mine[mine["dataset"] == dataset]
        notes = [*layer_notes(own, rows), *nothing_learned_notes(own, rows)]
        notes += [
            f"The paper's {names.method_title(theirs)} is {names.method_title(ours)} on this dataset."
            for theirs, ours in experiment.paper_trains.get(dataset, {}).items()
        ]
        if not any(r["dataset"] == dataset for r in paper):
            elsewhere = names.dataset_title(dataset) in known
            notes.append("Not in the paper's table: our addition." if elsewhere else "Not in the paper: a stand-in.")
        block = make_block(
            mine,
            paper,
            dataset=dataset,
            methods=rows,
            metrics=experiment.metrics_of.get(dataset, experiment.metrics),
            compare=experiment.stands_for(dataset, experiment.compare),
            notes=notes,
        )
        blocks.append(block)
    about = f" ({experiment.about_preset[preset]})" if preset in experiment.about_preset else ""
    title = f"{experiment.title}, preset {preset}{about}"
    notes = [*experiment.notes, *rank_lines(blocks, experiment.metrics[0])]
    if experiment.own_options().get("train.select") == "last":
        return ResultTable(title, blocks, missing, notes, epoch="of the last epoch")
    return ResultTable(title, blocks, missing, notes)
