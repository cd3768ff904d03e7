"""Published cells trained again on the CPU, in a temporary folder, and compared within noise.

A cell is the seeds of an experiment, dataset, method, preset and options that trained together. The same bits are
promised at the commit, versions, processor and stack of its record and nowhere else: its seeds are compared together.
"""

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from cmixup.errors import InputError
from scripts.config.compose import compose_train, override_words
from scripts.config.parts import GROUPS
from scripts.driver.job import Job, plan_job
from scripts.driver.runs import RunFolder
from scripts.plan.schedule import Item, train_items
from scripts.records.published import STUDY, published_runs
from scripts.records.run_tables import Row
from scripts.stats.intervals import Difference, summarise_values

QUICK = "fcn3"  # its stacks of ten train in seconds, those of other networks in minutes to an hour
LEVEL = 0.001  # of the t tests, over all cells that are compared
CLOSE = 0.02  # of the published mean
ERRORS = 2  # standard errors of the mean difference
FEWEST = 3  # seeds
ROUNDING = 2.5e-4  # of the published mean: scores of seeds 0 to 9 may be of rounded predictions


@dataclass(frozen=True)
class Cell:
    """Published runs that trained together: all seeds of the job, one of the runs, and test scores by seed."""

    seeds: tuple[int, ...]
    first: Row
    scores: dict[int, float]

    @property
    def name(self) -> str:
        """The folder of the runs without the seed."""
        return str(self.first["shared"]["run"])

    def command(self, out: Path) -> list[str]:
        """Return the command line of scripts.train that trains it again below `out`."""
        shared, words = self.first["shared"], [f"{key}={self.first[key]}" for key in (*GROUPS, "preset", "experiment")]
        place = [f"threads={shared['config']['threads']}", "device=cpu", "logger=none", f"out={out}"]
        return [*words, *override_words(shared["options"]), f"seeds={list(self.seeds)}", *place]


def published_cells(
    results: Path, datasets: Sequence[str] = (), experiments: Sequence[str] = (), models: Sequence[str] = (QUICK,)
) -> list[Cell]:
    """Return the published cells of some networks in the order of their names; no datasets or experiments are all."""
    cells: dict[tuple[str, tuple[int, ...]], Cell] = {}
    runs = published_runs(results, experiments, datasets)
    for run in runs[runs["model"].isin(models) & runs["trial"].isna()].to_dict("records"):
        of_study, shared = run["experiment"].startswith(STUDY), run["shared"]  # the study tunes and trains by the cell
        if "entry" not in shared:
            seeds = tuple(shared.get("stack_seeds", [] if of_study else [run["seed"]]))
            cell = cells.setdefault((shared["run"], seeds), Cell(seeds, run, {}))
            cell.scores[run["seed"]] = run[f"test_{shared.get('selection', 'nrmse')}"]
    if not cells:
        raise InputError(f"{results / 'runs'} holds no published run of {', '.join(models)} of these")
    return [cells[key] for key in sorted(cells)]


def draw_cells(cells: Sequence[Cell], n: int, seed: int) -> list[Cell]:
    """Return `n` cells (or all, if there are fewer), drawn without repetition with `seed`."""
    chosen = random.Random(seed).sample(range(len(cells)), min(n, len(cells)))  # noqa: S311 - no secret
    return [cells[k] for k in sorted(chosen)]


class Paired:
    """The published score of each seed and the one found again: the test score by which the cell selects."""

    def __init__(self, pairs: Sequence[tuple[float, float]]):
        self.pairs, n = pairs, len(pairs)
        # The mean of the differences again - published, seed by seed; NaN where a score is not finite.
        summary = summarise_values([again - published for published, again in pairs])
        self.difference = Difference(summary.mean, ((summary.std**2 / n, n - 1),) if n > 1 else ())
        self.published = fmean(published for published, _ in pairs)
        self.decided, error = n >= FEWEST, self.difference.error  # whether there are enough seeds to judge by
        rounding = abs(summary.mean) <= ROUNDING * abs(self.published)
        # Of the two-sided t test that the mean difference is 0; 0 where a score is not finite.
        self.p = 1.0 if rounding else self.difference.chance if error > 0 else 0.0
        # Whether the mean is near the published one, by its size or by the spread of the differences.
        self.close = abs(summary.mean) <= max(CLOSE * abs(self.published), ERRORS * error)

    def __str__(self) -> str:
        gap, n = self.difference, len(self.pairs)
        same = ", the same digits" if all(published == again for published, again in self.pairs) else ""
        seeds = f"{n} seed{'s' if n > 1 else ''}, mean {self.published:.4g} -> {self.published + gap.mean:.4g}{same}"
        if not self.decided:
            return f"{seeds}; not decided by fewer than {FEWEST} seeds"
        return f"{seeds}, {100 * gap.mean / self.published:+.2f} ± {100 * gap.error / self.published:.2f} %"


def beyond_noise(cells: Mapping[str, Paired]) -> dict[str, str]:
    """Return the cells that differ by more than noise, each with what is wrong; those of too few seeds are left out.

    A cell differs if its mean difference is significant by Bonferroni's correction over the cells. It also differs if
    its mean is neither within 2 % of the published one nor within two standard errors of it.
    """
    decided = {name: cell for name, cell in cells.items() if cell.decided}
    problems: dict[str, str] = {}
    for name, cell in decided.items():
        if cell.p <= LEVEL / len(decided):
            problems[name] = f"{cell}: p = {cell.p:.2g} of the paired t test"
        elif not cell.close:
            problems[name] = f"{cell}: further than {100 * CLOSE:g} % and than {ERRORS} standard errors"
    return problems


Read = Callable[[], dict[int, float]]  # a cell's test scores by seed, once it has been trained
Rerun = tuple[Item, Read]


def rerun_cells(
    cells: Sequence[Cell], workers: int = 0, study: Callable[[Cell, Path], Rerun] | None = None
) -> tuple[dict[str, Paired], dict[str, str]]:
    """Train cells again, printing a line for each; `study` plans one of the study in a folder.

    Returns the scores of each cell that gave any, and what is wrong with others, both by the cell's name.
    """
    paired, problems = dict[str, Paired](), dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="cmixup-verify-") as folder:
        items, readers = list[Item](), dict[str, tuple[Cell, Read]]()
        for number, cell in enumerate(cells, 1):
            place, name = Path(folder) / str(number), f"{number}: {cell.name}"  # several cells may share a name
            try:
                if study and cell.first["experiment"].startswith(STUDY):
                    item, read = study(cell, place)
                else:
                    job = plan_job(compose_train(cell.command(place)))
                    item, read = Item(name, (job,), job.epochs), partial(_scores, job)
            except InputError as error:  # an option or a value is no longer known
                problems[cell.name] = str(error).splitlines()[0]
                continue
            items.append(replace(item, name=name))
            readers[name] = cell, read

        def on_finish(item: Item, problem: str | None) -> str:
            cell, read = readers[item.name]
            again = read()
            pairs = [(score, again[seed]) for seed, score in cell.scores.items() if seed in again]
            if problem or len(pairs) < len(cell.scores):
                problems[cell.name] = problem or "some seeds gave no result"
            if pairs:
                paired[cell.name] = Paired([*(paired[cell.name].pairs if cell.name in paired else ()), *pairs])
            return f"{cell.name}: {problems.get(cell.name) or paired[cell.name]}"

        train_items(items, "verifying", workers=workers, on_finish=on_finish)
    return paired, problems


def _scores(job: Job) -> dict[int, float]:
    folders = [RunFolder(job.run_folder(seed)) for seed in job.seeds]
    reports = [folder.report() for folder in folders if folder.is_done()]
    return {report["seed"]: float(report["scores"]["test"][report["selection"]]) for report in reports}
