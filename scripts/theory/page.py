"""The parts of the page results/theory.md that come from numbers; its prose stands in the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from scripts.claims.prose import splice
from scripts.records.experiment import RESULTS
from scripts.records.tables import interval_text, markdown_rows, mean_text
from scripts.theory.numbers import (
    BASE,
    COMPARED,
    QUANTITIES,
    THIRD,
    Numbers,
    Quantity,
    Setting,
    base,
    methods_of,
    noisy,
    read,
    standing,
    swept,
    title,
)

PAGE = "theory.md"


def median_text(values: Mapping[int, float]) -> str:
    """Return the median over seeds, or a dash."""
    return f"{np.median(list(values.values())):.2g}" if values else "—"


def errors_of(theorem: int) -> tuple[Quantity, ...]:
    """Return the errors that a theorem orders."""
    return QUANTITIES[theorem][:2]


def short(theorem: int, q: Quantity) -> str:
    """Return the word by which a row of a table tells the errors of a theorem apart."""
    return q.theta if theorem != 3 else "MSE" if q.metric == "mse" else q.title


def base_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the table of all methods at the base."""
    body = [
        [title(theorem, m), *(mean_text(numbers.values(base(theorem), m, *q[:2])) for q in QUANTITIES[theorem])]
        for m in (*methods_of(theorem), *(("exact",) if theorem == 3 else ()))
    ]
    return markdown_rows(["method", *(q.title for q in QUANTITIES[theorem])], body)


def ordering_rows(theorem: int) -> list[tuple[Quantity, Setting]]:
    """Return every stated ordering over N and p, by p / N, and over Theorem 3's noise."""
    by_ratio = sorted(
        [base(theorem), *(at for name in "Np" for at in swept(theorem, name) if at.name == name)],
        key=lambda at: at.simulation.p / at.simulation.n,
    )
    return [
        (q, at)
        for q in errors_of(theorem)
        for at in [*by_ratio, *(noisy() if theorem == 3 else [])]
        if (theorem, q.theta, at.name) != (2, "true", "N")  # with true theta the training tasks are not used
    ]


def compared(numbers: Numbers, at: Setting, q: Quantity) -> list[str]:
    """Return the last cells of a row: the differences from all that C-Mixup is compared with, and the verdict."""
    found = numbers.differences(at, q.metric, q.theta)
    return [short(at.theorem, q), *(interval_text(found.get(m)) for m in COMPARED), standing(found)]


def compared_head(theorem: int) -> list[str]:
    """Return the heads of these cells."""
    minus = [f"minus {title(theorem, m)}" for m in COMPARED]
    return ["of" if theorem == 3 else "theta", *minus, "C-Mixup lowest"]


def ordering_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the paired differences over N and p with the verdicts."""
    head = ["changed", "N", "p", "p / N", *(["noise", "gap"] if theorem == 3 else []), *compared_head(theorem)]
    body = []
    for q, at in ordering_rows(theorem):
        n, p, changed = at.simulation.n, at.simulation.p, at.name.partition(" ")[0]
        line = [changed, str(n), str(p), f"{p / n:.3g}"]
        if theorem == 3:
            noise = at.name.removeprefix("noise ") if changed == "noise" else f"{THIRD.noise:g}"
            line += [noise, median_text(numbers.values(at, "", "gap"))]
        body.append([*line, *compared(numbers, at, q)])
    return markdown_rows(head, body)


def bandwidth_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the paired differences over C-Mixup's bandwidth with the verdicts."""
    rate = QUANTITIES[theorem][-1]
    bound = ["bandwidth / bound"] if theorem == 3 else []
    body = []
    for q in errors_of(theorem):
        for at in swept(theorem, "bandwidth"):
            share = numbers.values(at, "cmixup", rate.metric)
            over = [median_text(numbers.values(at, "cmixup", "bandwidth_over_bound")) for _ in bound]
            mean = f"{np.mean(list(share.values())):.3f}" if share else "—"
            body.append([f"{at.simulation.bandwidth:.3g}", *over, mean, *compared(numbers, at, q)])
    return markdown_rows(["bandwidth", *bound, rate.title, *compared_head(theorem)], body)


def parts(numbers: Numbers) -> dict[str, str]:
    """Return the content of every place of the page."""
    found = {"seeds": str(len(numbers.values(base(1), "cmixup", "mse", "true")))}
    for part in (base_table, ordering_table, bandwidth_table):
        found |= {f"{part.__name__}_{theorem}": "\n".join(part(numbers, theorem)) for theorem in BASE}
    return found


def render(results: Path = RESULTS) -> dict[str, str]:
    """Return the page with the numbers of `results/theory.csv`, by its path below results/; nothing without numbers.

    Where `results` has no page yet, the prose is that of the project's own.
    """
    numbers = read(results)
    page = results / PAGE if (results / PAGE).is_file() else RESULTS / PAGE
    return {PAGE: splice(page.read_text(), parts(numbers))} if numbers else {}
