"""Verify the published numbers.

- `scores`: every published score is what its stored predictions give.
- `cells`: published cells, drawn with `seed`, agree within noise when they are trained again (`scripts.plan.rerun`).

`make verify` checks these and the pages. What differs is named; the status is then 1, and also where nothing could be
decided. Example: `python -m scripts.verify cells count=12 seed=5`.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import check_choice
from scripts.config.arguments import Args, parse_args
from scripts.config.compose import option_names
from scripts.driver.cli import user_errors
from scripts.plan.rerun import QUICK, beyond_noise, draw_cells, published_cells, rerun_cells
from scripts.records.experiment import NOT_PUBLISHED, RESULTS
from scripts.records.published import STUDY, dataset_of
from scripts.records.rescored import NEAR, NEAR_R, verify_scores
from scripts.study.cells import study_rerun

Checked = tuple[list[str], str]  # a line for everything that is wrong, and in words how much was compared
CHECKS = ("scores", "cells")
KEYS = {
    "what": " or ".join(CHECKS),
    "count": "cells to draw, as many as there are at most; default 12",
    "seed": "of the drawing; default: a new one, which is printed",
    "datasets": "whose cells, names between commas; default all",
    "experiments": "whose cells; default all but the study's, such as study_no_search",
    "models": "whose cells; default fcn3, the network that trains in seconds",
    "jobs": "processes; default one a core",
    "results": "where the published records are; default results/",
}


def check_scores(results: Path) -> Checked:
    """Compute every score from its predictions."""
    tally = verify_scores(results)
    for group, n in sorted(tally.without.items()):
        print(f"no predictions are kept of {n} runs: {group}", file=sys.stderr)
    near = tally.scores - tally.exact - len(tally.wrong)
    line = (
        f"{tally.scores - len(tally.wrong)} of {tally.scores} scores of {tally.runs} runs are what their predictions "
        f"give: {tally.exact} to the last bit, {near} within {NEAR:.3%} (R within {NEAR_R:g})"
    )
    return tally.wrong if tally.runs else ["no run has predictions"], line


def check_cells(results: Path, args: Args) -> Checked:
    """Train published cells again and compare them within noise."""
    study = sorted(path.name for path in (results / "runs").glob(f"{STUDY}*"))
    usual = [name for name in option_names("experiment") if name not in NOT_PUBLISHED]
    tables = sorted({dataset_of(path) for name in study for path in (results / "runs" / name).glob("*.json")})
    datasets = args.names("datasets", [*option_names("dataset"), *tables])
    experiments = args.names("experiments", [*usual, *study]) if "experiments" in args else usual
    models = args.names("models", option_names("model")) if args.get("models") else [QUICK]
    cells = published_cells(results, datasets, experiments, models)
    seed, n = args.count("seed", random.randrange(10**6)), args.count("count", 12)  # noqa: S311 - no secret
    print(f"{min(n, len(cells))} of {len(cells)} published cells, drawn with seed={seed}", flush=True)
    pairs, problems = rerun_cells(draw_cells(cells, n, seed), args.count("jobs"), study_rerun)
    problems = {**beyond_noise(pairs), **problems}
    decided = {name for name, cell in pairs.items() if cell.decided} | problems.keys()
    lines = [f"{name}: {line}" for name, line in problems.items()]
    agree = f"{len(decided) - len(problems)} of {len(decided)} cells agree within noise"
    return lines if decided else ["nothing could be decided"], agree


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args = parse_args(argv, KEYS, __doc__, names=("what",))
        what = check_choice("what", args.get("what", ""), CHECKS)
        results = Path(args.get("results") or RESULTS)
        problems, line = check_scores(results) if what == "scores" else check_cells(results, args)
        for problem in problems:
            print(f"DIFFERS {problem}", file=sys.stderr)
        print(f"{what}: {line}", flush=True)
        if problems:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
