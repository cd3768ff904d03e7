"""The runs that tables and figures of the paper show and that are not published, with what each costs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from cmixup.errors import InputError
from cmixup.files import write_atomically
from datasets.common.fetch import lacking
from scripts.config.arguments import parse_seeds
from scripts.config.compose import compose_train, option_names, part_file
from scripts.config.parts import dataset_class
from scripts.driver.job import Job, plan_job
from scripts.driver.provenance import sources_digest
from scripts.driver.runs import folder_name
from scripts.plan.asked import AskedCell, Choice, asked_cells, shared_options
from scripts.plan.costs import run_minutes
from scripts.plan.time_budget import Missing
from scripts.records.artefacts import Artefact, load_artefacts
from scripts.records.experiment import RESULTS, Experiment, load_experiment
from scripts.records.published import published_seeds, run_files

MACHINE = ("seeds=", "logger=", "out=", "device=", "rerun=")  # of a command line: where and how it is run
NOWHERE = "/nowhere"  # a folder without runs


def missing_runs(artefacts: Sequence[Artefact] | None = None, results: Path = RESULTS) -> list[Missing]:
    """Return what is missing of these artefacts, of all of them by default: minutes, as every cell is planned.

    Presets are those that decide an artefact and `paper`; a cell that several show is one item.
    """
    cells: dict[str, tuple[tuple[str, ...], Job, set[int], list[str]]] = {}
    for artefact in load_artefacts() if artefacts is None else artefacts:
        if not artefact.experiment:
            continue
        experiment = load_experiment(artefact.experiment)
        for words, job, asked in _artefact_cells(artefact, experiment, results):
            cell = job.folder.relative_to(f"{NOWHERE}/runs").as_posix()
            known = cells.setdefault(cell, (words, job, set(), []))
            known[2].update(asked)
            known[3].append(artefact.name)
    found: list[Missing] = []
    for cell, (words, job, seeds, shown_in) in cells.items():
        there = published_seeds(cell, results)
        left = tuple(sorted(seeds - there))
        for k, group in enumerate([left] if job.stackable and left else [(seed,) for seed in left]):
            name = hashlib.sha256(repr((cell, group)).encode()).hexdigest()[:16]
            shown, published = tuple(dict.fromkeys(shown_in)), len(there & seeds) + k
            found.append(Missing(name, words, cell, group, published, shown, run_minutes(job), job.settings.epochs))
    return found


def _artefact_cells(
    artefact: Artefact, experiment: Experiment, results: Path
) -> Iterable[tuple[tuple[str, ...], Job, list[int]]]:
    """Yield the command line of each cell of an artefact, the job of its seed 0 on the CPU, and all of its seeds."""
    methods = [m for m in experiment.methods if m in option_names("method")]
    for preset in dict.fromkeys([*artefact.presets, "paper"]):
        datasets = [d for d in experiment.datasets if d in option_names("dataset")]
        datasets = [d for d in datasets if preset in part_file("dataset", d)["presets"]]
        choice = Choice(datasets, methods, parse_seeds(experiment.seeds), preset, NOWHERE, "cpu", rerun=False)
        for cell in asked_cells(experiment, choice):
            for change in cell.changes:
                if _is_complete(cell, preset, change, shared_options(experiment), results):
                    continue
                words = cell.command(choice, change, [0])
                try:
                    job = plan_job(compose_train(words))
                except InputError:
                    continue  # a preset of another size of network, or a value that this dataset does not take
                yield tuple(w for w in words if not w.startswith(MACHINE)), job, cell.seeds


def _is_complete(cell: AskedCell, preset: str, change: str, shared: Mapping[str, Any], results: Path) -> bool:
    """Return whether files show that a cell is published with all seeds, which spares the third of a second of a plan.

    A layer is named in a file only where it is not the preset's: with the other layer and a file without one, both are.
    """
    changed = OmegaConf.from_dotlist(change.splitlines())
    own = {key: OmegaConf.select(changed, key) for key in (line.partition("=")[0] for line in change.splitlines())}
    model = compose_train([f"dataset={cell.dataset}"]).model.name
    cells = f"{cell.recorded}/{cell.dataset}/{model}/{cell.method}"

    def there(more: Mapping[str, Any]) -> bool:
        name = folder_name(preset, {**shared, **more})
        return set(cell.seeds) <= published_seeds(f"{cells}/{name}", results)

    other = {"input": "hidden", "hidden": "input"}.get(str(own.get("method.layer")))
    return there(own) or (len(own) == 1 and other is not None and there({}) and there({"method.layer": other}))


def _why_wanting(dataset: str, *, fetching: bool) -> str:
    """Return why a dataset cannot be trained here, or nothing; see `datasets.common.fetch.lacking`."""
    kind = dataset_class(dataset)
    found = lacking(kind.files, kind.folders, fetching=fetching)
    return f"{dataset}: {found}" if found else ""


def state_fingerprint(results: Path = RESULTS) -> str:
    """Return what the list depends on, as a short text: sources, configurations, the map and what is published."""
    digest = hashlib.sha256(sources_digest().encode())
    for path in (RESULTS / "artefacts.yaml", *run_files(results)):
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:16]


def remembered_missing(path: Path, results: Path = RESULTS, *, fetching: bool = False) -> list[Missing]:
    """Return what is missing, from a file where it holds the list of this state of the code; else make and keep it.

    Args:
        path: the file. What of the data is here is not in it, and is looked at each time.
        results: the folder results/.
        fetching: whether data that can be fetched count as here.
    """
    state = state_fingerprint(results)
    items = _kept_list(path, state)
    if items is None:
        items = missing_runs(results=results)
        write_atomically(path, json.dumps({"state": state, "items": [asdict(item) for item in items]}, indent=1) + "\n")
    wanting = {dataset: _why_wanting(dataset, fetching=fetching) for dataset in {item.dataset for item in items}}
    return [replace(item, wanting=wanting[item.dataset]) for item in items]


def _kept_list(path: Path, state: str) -> list[Missing] | None:
    """Return the list in a file, or None: there is none, it is of another state, or the file is damaged."""
    try:
        kept = json.loads(path.read_text())
        found = [Missing(**{k: _as_tuple(v) for k, v in one.items()}) for one in kept["items"]]
        return found if kept["state"] == state else None
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _as_tuple(value: Any) -> Any:
    """Return a value from JSON, which knows no tuples."""
    return tuple(value) if isinstance(value, list) else value
