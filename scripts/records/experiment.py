"""The keys of a file of configs/experiment, a table or figure, and the numbers that the paper prints for it."""

from dataclasses import dataclass, field
from pathlib import Path

from cmixup.errors import InputError, check_choice
from scripts.config.compose import CONFIG_DIR, option_names, part_path, read_part
from scripts.config.parts import check_part
from scripts.records import names
from scripts.records.csv_rows import read_csv

RESULTS = CONFIG_DIR.parent / "results"
NOT_PUBLISHED = ("adhoc", "debug", "tune")  # names of runs that belong to no table or figure


@dataclass(frozen=True)
class Experiment:
    """One file of configs/experiment: the cells of a table or figure and how to show them."""

    name: str  # its file, and the column `experiment` of its records
    title: str  # of the table or figure
    datasets: list
    methods: list
    budget_minutes: float  # a cell that would take longer here is not trained, and its command is printed
    seeds: int = 10  # how many are trained if the command line does not say
    methods_of: dict = field(default_factory=dict)  # other methods for some of the datasets
    # for some of the datasets, which of our methods the paper trains there under another's name; it has that one's
    # numbers, and the method of that name is an extra row
    paper_trains: dict = field(default_factory=dict)
    overrides: list = field(default_factory=list)  # options of scripts.train that all its runs share
    runs_from: dict = field(default_factory=dict)  # methods that another trains already: its name, or by dataset
    choose_layer: list = field(default_factory=list)  # trained at both layers; the better by val score is reported
    # for names of the paper's rows that are no method's title, which of our methods they mean; where there are several
    # ("ERM/MAML"), the one that is trained on the dataset
    paper_methods: dict = field(default_factory=dict)
    paper_table: str = ""  # with `setting`, rows of results/paper/results.csv to compare with; spaces separate several
    setting: str = ""
    metrics: list = field(default_factory=list)  # columns of the table
    metrics_of: dict = field(default_factory=dict)  # other columns for some of the datasets
    compare: str = ""  # the method whose paired differences to the others are printed
    fallback: str = ""  # the dataset that is trained if none of `datasets` can be fetched
    cpu_preset: str = ""  # the preset on a machine without a GPU, if the command line does not name one
    about_preset: dict = field(default_factory=dict)  # what the title of a table says about a preset
    notes: list = field(default_factory=list)  # sentences below the table
    figure: str = ""  # of curves over epochs, by its name; empty for all others
    # of an ablation, what is changed of the preset: entries with a `label` and `options` (`preset` may be among them),
    # or with a `grid` of options with lists of values, whose combinations are points; of some `datasets` and `methods`,
    # or of all. A method without points stands beside them as its preset
    points: list = field(default_factory=list)
    seeds_of: dict = field(default_factory=dict)  # at most so many seeds for some datasets: the first asked for


def load_experiment(name: str) -> Experiment:
    """Read and check configs/experiment/<name>.yaml."""
    path = part_path("experiment", name)
    if not path.is_file():
        known = ", ".join(option_names("experiment"))
        raise InputError(f"experiment must be one of {known}, got {name!r}")
    node = read_part(path)
    experiment = Experiment(**check_part(f"experiment/{name}", node, function=Experiment).kwargs, name=node["name"])
    for entry in experiment.points:
        _check_point(experiment, entry)
    return experiment


def _check_point(experiment: Experiment, entry: dict) -> None:
    """Raise `InputError` unless an entry of `points` has options with a label, or a grid, of known cells."""
    where, known = f"experiment/{experiment.name}.points", {"datasets", "methods"}
    if set(entry) - known not in ({"label", "options"}, {"grid"}):
        raise InputError(f"{where} must have label and options, or grid, got {entry!r}")
    for key in known & set(entry):
        for name in entry[key]:
            check_choice(f"{where}.{key}", name, getattr(experiment, key))
    for option, values in entry.get("grid", {}).items():
        if not values or len({str(v) for v in values}) < len(values):
            raise InputError(f"{where}.grid.{option} must be different values, got {values!r}")


def all_experiments() -> list[Experiment]:
    """Return every table and figure, in order of their names."""
    return [load_experiment(name) for name in option_names("experiment") if name not in NOT_PUBLISHED]


def paper_rows(experiment: Experiment, results: Path = RESULTS) -> list[dict[str, str]]:
    """Return the paper's numbers for this table, with our spellings of dataset, method and metric.

    The worst domain is a setting in the paper's file and a metric of ours.
    """
    rows = []
    for row in read_csv(results / "paper" / "results.csv"):
        if row["table"] in experiment.paper_table.split() and row["setting"] in experiment.setting.split():
            dataset = names.spelling("dataset", row["dataset"], experiment.datasets)
            methods = experiment.methods_of.get(dataset, experiment.methods)
            meant = [method for method in experiment.paper_methods.get(row["method"], []) if method in methods]
            method = meant[0] if meant else names.spelling("method", row["method"], methods)
            metric = ("worst_" if row["setting"] == "ood-worst" else "") + names.spelling("metric", row["metric"])
            ours = {"dataset": dataset, "method": stands_for(experiment, dataset, method), "metric": metric}
            rows.append({**row, **ours})
    return rows


def stands_for(experiment: Experiment, dataset: str, method: str) -> str:
    """Return which of our methods the paper's row of `method` is about on `dataset`."""
    return str(experiment.paper_trains.get(dataset, {}).get(method, method))
