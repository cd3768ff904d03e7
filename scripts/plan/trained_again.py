"""Published cells trained again and compared: to the last bit with the kernels of their records, or within noise.

An experiment, dataset, method, preset and options with all seeds of their stack are a cell. It is trained on the CPU in
a temporary folder, with the kernels that its record names (`scripts.machine.kernels`). Where these cannot be had, or
PyTorch has another version, numbers need not repeat: means over seeds are compared (`Paired`).
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cmixup.errors import InputError
from scripts.config.compose import compose_train, override_words
from scripts.config.parts import GROUPS
from scripts.driver.job import Job, plan_job
from scripts.driver.runs import is_done, read_report
from scripts.machine.kernels import asking_kernels, kernels_of, what_is_here, word_for
from scripts.plan.schedule import Item, Planned, Problem, items_of, train_items
from scripts.plan.verification import (
    Cell,
    by_stack,
    compared_numbers,
    config_differences,
    own_score,
    report_differences,
)
from scripts.records.stats import Summary, holm_adjusted, summarise_values

LEVEL = 0.001  # of the t tests, over all cells that are compared
CLOSE = 0.02  # of the published mean
ERRORS = 2  # standard errors of the mean difference
FEWEST = 3  # seeds
ROUNDING = 1e-6  # of the published mean: scores are of float32 predictions


def training_commands(cell: Cell, out: Path) -> list[list[str]]:
    """Return the command lines of scripts.train that train the stack of a cell again, in its order."""
    report = cell.first
    words = [f"{key}={report[key]}" for key in (*GROUPS, "preset", "experiment")]
    own = [f"threads={report['config']['threads']}", "device=cpu", "logger=none", f"out={out}"]
    return [
        [*words, *override_words(options), f"seeds=[{','.join(map(str, seeds))}]", *own]
        for options, seeds in cell.stack
    ]


Scores = dict[str, list[tuple[float, float]]]  # by name of a cell: the published score of each seed and the one found
Wrong = dict[str, list[str]]  # by name of a cell: what differs


def compare_cell(cell: Cell, job: Job, scores: Scores | None = None) -> tuple[list[str], str]:
    """Return what differs between a cell and its job, which has been trained, and in words what was compared.

    Args:
        cell, job: the cell, and what trained it again.
        scores: if given, numbers need not repeat, and the scores of the seeds are put there.
    """
    changed = config_differences(cell.first["config"], job.config)
    lines = [f"preset {cell.first['preset']} has changed: {difference}" for difference in changed]
    folders = {seed: job.run_folder(seed) for seed in cell.reports}
    again = {seed: read_report(folder) for seed, folder in folders.items() if is_done(folder)}
    if absent := [seed for seed in cell.reports if seed not in again]:
        lines.append(f"seeds {absent} gave no result")
    both = [(cell.reports[seed], report) for seed, report in again.items()]
    if scores is not None:
        pairs = scores.setdefault(cell.name, [])
        pairs += [(own_score(published), own_score(report)) for published, report in both]
        return lines, str(Paired(pairs)) if pairs else ""
    n = sum(len(compared_numbers(published)) for published, _ in both)
    if found := [difference for pair in both for difference in report_differences(*pair)]:
        largest = max(found, key=lambda difference: difference.size)
        lines.append(f"{len(found)} of {n} numbers differ, most: {largest}")
    return lines, f"{n} numbers equal"


CellOf = dict[tuple[Path, tuple[int, ...]], Cell]  # by folder and seeds of its job


def plan_stacks(cells: Sequence[Cell], out: Path, wrong: Wrong) -> tuple[list[list[Planned]], CellOf]:
    """Return the stacks that train the cells again, in folders below `out`, and which of their jobs are which cells.

    What cannot be planned, as an option or a value is no longer known, is put into `wrong`.
    """
    work: list[list[Planned]] = []
    cell_of: CellOf = {}
    for number, group in enumerate(by_stack(cells)):
        lines = training_commands(group[0], out / str(number))
        try:
            stack = [(words, plan_job(compose_train(words))) for words in lines]
        except InputError as error:
            for cell in group:
                wrong.setdefault(cell.name, []).append(str(error).splitlines()[0])
            continue
        work.append(list(stack))
        wanted = {(json.dumps(cell.first["options"], sort_keys=True), cell.seeds): cell for cell in group}
        for (options, seeds), (_, job) in zip(group[0].stack, stack, strict=True):
            if cell_again := wanted.get((json.dumps(options, sort_keys=True), seeds)):
                cell_of[job.folder, tuple(job.seeds)] = cell_again
    return work, cell_of


def train_again(cells: Sequence[Cell], workers: int = 0, scores: Scores | None = None) -> Wrong:
    """Train the cells again; return what differs by the name of its cell, printing a line for each on the way.

    Args:
        cells: which.
        workers: processes; 0 is one a core.
        scores: as of `compare_cell`.

    Raises:
        InputError: the files of a dataset cannot be had.
    """
    wrong = Wrong()
    with tempfile.TemporaryDirectory(prefix="cmixup-verify-") as folder:
        work, cell_of = plan_stacks(cells, Path(folder), wrong)
        jobs = [job for stack in work for _, job in stack]
        for dataset in {json.dumps(job.config["dataset"], sort_keys=True): job.dataset for job in jobs}.values():
            if not dataset.synthetic:
                dataset.fetch()
        left = len(cell_of)

        def on_finish(item: Item, problem: Problem | None) -> str:
            nonlocal left
            said = []
            for job in item.jobs:
                cell = cell_of.get((job.folder, tuple(job.seeds)))
                if cell is None:  # it was only there to fill the stack
                    continue
                left -= 1
                lines, words = compare_cell(cell, job, scores)
                if lines := [*lines, problem.text] if problem else lines:
                    wrong.setdefault(cell.name, []).extend(lines)
                state = f"DIFFERS: {'; '.join(lines)}" if lines else words
                said.append(f"{cell.name}: {state} ({left} of {len(cell_of)} left)")
            return "\n".join(said)

        train_items(items_of(work), "verifying", workers=workers, on_finish=on_finish)
    return wrong


def train_cells(cells: Sequence[Cell], workers: int, *, within_noise: str = "") -> tuple[int, Wrong, str]:
    """Train cells and compare them.

    Args:
        cells: which.
        workers: processes; 0 is one a core.
        within_noise: why no number of any cell needs to repeat, such as another version of PyTorch; nothing where the
            kernels of each record decide.

    Returns:
        How many cells were decided, what differs by the name of its cell, and what was found in words.
    """
    by_word: dict[str | None, list[Cell]] = {}
    for cell in cells:
        by_word.setdefault(None if within_noise else word_for(kernels_of(cell.first)), []).append(cell)
    other = by_word.pop(None, [])
    judged, wrong, found = 0, Wrong(), list[str]()
    if by_word:
        judged, wrong, line = train_repeated(by_word, workers)
        found.append(line)
    if other:
        decided, far, line = train_within_noise(other, workers, within_noise or "other kernels")
        judged, wrong = judged + decided, wrong | far
        found.append(line)
    return judged, wrong, "; ".join(found)


def train_repeated(by_word: Mapping[str | None, Sequence[Cell]], workers: int) -> tuple[int, Wrong, str]:
    """Train cells, given by the word that asks for their kernels; the results are those of `train_cells`."""
    started, wrong = time.perf_counter(), Wrong()
    for word, group in by_word.items():
        with asking_kernels(str(word)):
            wrong |= train_again(group, workers)
    tried = sum(map(len, by_word.values()))
    said = f"{tried - len(wrong)} of {tried} cells repeat to the last bit ({time.perf_counter() - started:.0f} s)"
    return tried, wrong, said


def train_within_noise(cells: Sequence[Cell], workers: int, why: str) -> tuple[int, Wrong, str]:
    """Train cells whose numbers need not repeat, for the reason `why`; the results are those of `train_cells`."""
    made = " or ".join(sorted({kernels_of(cell.first) for cell in cells}))
    print(f"{why}: compared within noise: {len(cells)} cells, made with {made}; {what_is_here()}", flush=True)
    started, scores = time.perf_counter(), Scores()
    wrong = train_again(cells, workers, scores)
    found = {name: Paired(pairs) for name, pairs in scores.items()}
    for name, line in beyond_noise(found).items():
        wrong.setdefault(name, []).append(line)
    for name, cell in found.items():
        if not cell.decided:
            print(f"not decided: {name}: {cell}")
    decided = {name for name, cell in found.items() if cell.decided} | wrong.keys()
    same = f"{len(decided) - len(wrong)} of {len(decided)} cells agree within noise"
    return len(decided), wrong, f"{same} ({time.perf_counter() - started:.0f} s)"


@dataclass(frozen=True)
class Paired:
    """The published score of each seed and the one found again: the test score by which the cell selects.

    Kernels round otherwise, so no seed has its digits again, and a cell is judged by its seeds together: the
    differences again - published, seed by seed.
    """

    pairs: Sequence[tuple[float, float]]

    @cached_property
    def published(self) -> float:
        """The published mean."""
        return summarise_values([published for published, _ in self.pairs]).mean

    @cached_property
    def difference(self) -> Summary:
        """The differences again - published."""
        return summarise_values([again - published for published, again in self.pairs])

    @property
    def decided(self) -> bool:
        """Whether there are enough seeds to judge by."""
        return len(self.pairs) >= FEWEST

    @property
    def error(self) -> float:
        """The standard error of the mean difference."""
        return self.difference.std / math.sqrt(self.difference.n)

    @property
    def rounded(self) -> bool:
        """Whether the mean difference is no larger than what rounding a prediction makes."""
        return abs(self.difference.mean) <= ROUNDING * abs(self.published)

    @property
    def p(self) -> float:
        """The p value of the two-sided t test that the mean difference is 0; 0 where a score is not finite."""
        from scipy.special import stdtr  # scipy.stats is slow to import

        if self.rounded:
            return 1.0
        if not self.error > 0:
            return 0.0
        return float(2 * stdtr(self.difference.n - 1, -abs(self.difference.mean) / self.error))

    @property
    def close(self) -> bool:
        """Whether the mean is near the published one, by its size or by the spread of the differences."""
        return abs(self.difference.mean) <= max(CLOSE * abs(self.published), ERRORS * self.error)

    def __str__(self) -> str:
        found, n = self.difference, len(self.pairs)
        seeds = f"{n} seed{'s' if n > 1 else ''}, mean {self.published:.4g} -> {self.published + found.mean:.4g}"
        if not self.decided:
            return f"{seeds}; not decided by fewer than {FEWEST} seeds"
        return f"{seeds}, {100 * found.mean / self.published:+.2f} ± {100 * self.error / self.published:.2f} %"


def beyond_noise(cells: Mapping[str, Paired]) -> dict[str, str]:
    """Return the cells that differ by more than noise, each with what is wrong; those of too few seeds are left out.

    A cell differs if its mean difference is significant by Holm's correction (1979) over the cells, or if its mean is
    neither within 2 % of the published one nor within two standard errors of it.
    """
    decided = {name: cell for name, cell in cells.items() if cell.decided}
    wrong: dict[str, str] = {}
    for (name, cell), corrected in zip(
        decided.items(), holm_adjusted([cell.p for cell in decided.values()]), strict=True
    ):
        if corrected <= LEVEL:
            wrong[name] = f"{cell}: p = {cell.p:.2g} of the paired t test"
        elif not cell.close:
            wrong[name] = f"{cell}: further than {100 * CLOSE:g} % and than {ERRORS} standard errors"
    return wrong
