"""The parts of the page results/theory.md that come from numbers; its prose stands in the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from scripts.claims.prose import splice
from scripts.records.experiment import RESULTS
from scripts.records.stats import paired
from scripts.records.tables import interval_text, markdown_rows, mean_text
from scripts.theory.numbers import (
    BASE,
    COMPARED,
    EXACT,
    QUANTITIES,
    THIRD,
    Numbers,
    Quantity,
    Setting,
    at_bandwidth,
    base,
    methods_of,
    noisy,
    read,
    swept,
    title,
    verdict,
)

PAGE = "theory.md"
Values = Mapping[int, float]


def median_text(values: Values, digits: int = 2) -> str:
    """Return the median, or a dash."""
    return f"{np.median(list(values.values())):.{digits}g}" if values else "—"


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
    return [short(at.theorem, q), *(interval_text(found.get(m)) for m in COMPARED), verdict(found)]


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


def conclusions(numbers: Numbers, theorem: int) -> list[str]:
    """Return, in words, where each stated ordering holds, is open, or does not hold, and where ERM stands."""
    lines = []
    for q in errors_of(theorem):
        said = {at: verdict(numbers.differences(at, *q[:2])) for other, at in ordering_rows(theorem) if other == q}
        what = short(3, q) if theorem == 3 else f"MSE with {q.theta} theta"
        changed = [
            f"it {_is(one)} at {_list(place_text(at) for at in where)}"
            for one in ("holds", "open", "does not hold")
            if (where := [at for at, found in said.items() if found == one and at.name != "base"])
        ]
        first = f"**{what}: at the base the ordering {_is(said[base(theorem)])}.**"
        lines.append(f"- {first} With one thing changed, {'; '.join(changed)}.")
    return [*lines, _erm(numbers, theorem)]


def place_text(at: Setting) -> str:
    """Return what is changed from the base, in words."""
    given = at.simulation
    return {"N": f"N = {given.n}", "p": f"p = {given.p}"}.get(at.name, at.name)


def _is(said: str) -> str:
    return f"is {said}" if said == "open" else said


def _list(words: Iterable[str]) -> str:
    found = list(dict.fromkeys(words))
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def _of(theorem: int, q: Quantity) -> str:
    return f", {q.theta} theta" if theorem != 3 else ""


def _mse(theorem: int) -> list[Quantity]:
    return [q for q in errors_of(theorem) if q.metric == "mse"]


def _erm(numbers: Numbers, theorem: int) -> str:
    """Return the sentence on ERM, with which the theorem compares nothing."""
    at, parts = base(theorem), []
    for erm in (m for m in methods_of(theorem) if m.startswith("erm")):
        for q in _mse(theorem):
            mine, other = (numbers.values(at, m, *q[:2]) for m in ("cmixup", erm))
            if found := paired(mine, other):
                side = "ERM is lower" if found.low > 0 else "C-Mixup is lower" if found.high < 0 else "no difference"
                parts.append(f"minus {title(theorem, erm)}{_of(theorem, q)} {interval_text(found)} ({side})")
    return f"- ERM mixes nothing, and the theorem does not compare with it. MSE of C-Mixup {'; '.join(parts)}."


def spans(numbers: Numbers) -> dict[str, str]:
    """Return what the prose says of Theorem 3's conditions and of the limits in which a method is another one."""
    at, zero = base(3), at_bandwidth(1, 0)
    over, gaps = numbers.values(at, "cmixup", "bandwidth_over_bound"), numbers.values(at, "", "gap")
    inside = [
        f"{one.simulation.bandwidth:g} (true partner {_rate(numbers, one)}, MSE "
        f"{verdict(numbers.differences(one, 'mse', 'estimated'))})"
        for one in swept(3, "bandwidth")
        if max(numbers.values(one, "cmixup", "bandwidth_over_bound").values(), default=math.inf) <= 1
    ]
    found = {
        "seeds": str(len(numbers.values(base(1), "cmixup", "mse", "true"))),
        "over_bound": median_text(over, 3),
        "true_partners": _rate(numbers, at),
        "inside_bound": "; ".join(inside) or "none",
        "gap_above_1": f"{sum(gap > 1 for gap in gaps.values())} of {len(gaps)}",
        "gap": median_text(gaps, 3),
        "nearest_other": least_text(numbers.values(zero, "cmixup", "nearest_other")),
        "itself": least_text(numbers.values(zero, "cmixup_self", "itself")),
        "exact_error": bound_text(numbers.values(Setting(EXACT, 3, THIRD), "exact", "theta_error", "estimated"), max),
    }
    for theorem in BASE:
        for q in _mse(theorem):
            wide = numbers.values(at_bandwidth(theorem, math.inf), "cmixup", *q[:2])
            found[f"infinite_{theorem}_{q.theta}"] = zero_text(wide, numbers.values(base(theorem), "mixup", *q[:2]))
    for q in _mse(1):
        own, erm = numbers.values(zero, "cmixup_self", *q[:2]), numbers.values(base(1), "erm", *q[:2])
        found[f"itself_{q.theta}"] = zero_text(own, erm)
    for method, metric, bound in (
        ("exact", "a_largest", max), ("exact", "rank", max), ("mixup", "a_smallest", min), ("mixup", "rank", min)
    ):  # fmt: skip
        found[f"{method}_{metric}"] = bound_text(numbers.values(at, method, metric), bound)
    return found


def _rate(numbers: Numbers, at: Setting) -> str:
    values = numbers.values(at, "cmixup", "pairing_rate").values()
    return f"{np.mean(list(values)):.1%}" if values else "—"


def zero_text(first: Values, second: Values) -> str:
    """Return whether a difference over seeds is 0, with its interval where that is not so in every seed."""
    found = paired(first, second)
    if found is None:
        return "—"
    if all(first[s] == second[s] for s in set(first) & set(second)):
        return f"0 in each of {found.n} seeds: the same draws"
    verb = "contains" if found.low <= 0 <= found.high else "DOES NOT contain"
    return f"{found.mean:+.1e} [{found.low:+.1e}, {found.high:+.1e}], which {verb} 0"


def least_text(values: Values) -> str:
    """Return the least share over seeds."""
    least = min(values.values(), default=math.nan)
    return "all" if least == 1 else f"{least:.2%} or more"


def bound_text(values: Values, bound: Callable[..., float]) -> str:
    """Return the largest or the least value over seeds."""
    return f"{bound(values.values(), default=math.nan):.3g}"


def parts(numbers: Numbers) -> dict[str, str]:
    """Return the content of every place of the page."""
    found = spans(numbers)
    for part in (conclusions, base_table, ordering_table, bandwidth_table):
        found |= {f"{part.__name__}_{theorem}": "\n".join(part(numbers, theorem)) for theorem in BASE}
    return found


def render(results: Path = RESULTS) -> dict[str, str]:
    """Return the page with the numbers of `results/theory.csv`, by its path below results/; nothing without numbers.

    Where `results` has no page yet, the prose is that of the project's own.
    """
    numbers = read(results)
    page = results / PAGE if (results / PAGE).is_file() else RESULTS / PAGE
    return {PAGE: splice(page.read_text(), parts(numbers))} if numbers else {}
