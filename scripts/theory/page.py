"""The page results/theory.md: what the theorems say, what was simulated, and whether each ordering holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from scripts.records.experiment import RESULTS
from scripts.records.stats import Interval, Summary, paired
from scripts.records.tables import markdown_rows
from scripts.theory.figures import TITLES, methods_of
from scripts.theory.numbers import BANDWIDTHS, BASE, COMPARED, EXACT, FEATURES, NOISES, SIZES, Numbers, read, verdict
from scripts.theory.texts import CANNOT, INTRODUCTION, STATEMENTS, names_of

Place = tuple[str, int, int]
THETAS = {1: ("estimated", "true"), 2: ("estimated", "true"), 3: ("estimated",)}
METRICS = {1: ("mse",), 2: ("mse",), 3: ("mse", "theta_error")}
METRIC_TITLES = {"mse": "MSE", "theta_error": "‖theta_hat - theta‖²"}


def summary_text(found: Summary | None, decimals: int = 3) -> str:
    """Return mean ± std, or a dash."""
    return f"{found.mean:.{decimals}f} ± {found.std:.{decimals}f}" if found else "—"


def interval_text(found: Interval | None) -> str:
    """Return a difference with its interval, or a dash."""
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]" if found else "—"


def base_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the table of all methods at the base."""
    place = numbers.base(theorem)
    if theorem == 3:
        columns = [("mse", "estimated"), ("theta_error", "estimated"), ("pairing_rate", "")]
        head = ["method", "MSE in the test domain", METRIC_TITLES["theta_error"], "true partner"]
    else:
        columns = [("mse", "estimated"), ("mse", "true"), ("cosine", ""), ("same_cluster", "")]
        head = ["method", "MSE, estimated theta", "MSE, true theta", "cos(theta_hat, theta)", "pairs of one cluster"]
    body = []
    for method in (*methods_of(theorem), *(("exact",) if theorem == 3 else ())):
        line = [numbers.summary(theorem, place, method, metric, theta=theta) for metric, theta in columns]
        body.append([names_of(theorem).get(method, TITLES[method]), *map(summary_text, line)])
    return markdown_rows(head, body)


def places(theorem: int) -> list[Place]:
    """Return the places over N and p, by p / N; those of Theorem 3's noise follow."""
    base = BASE[theorem]
    found: list[Place] = [("base", base.n, base.p)]
    found += [("N", n, base.p) for n in SIZES[theorem]] + [("p", base.n, p) for p in FEATURES[theorem]]
    found.sort(key=lambda place: place[2] / place[1])
    return found + ([(f"noise {noise:g}", base.n, base.p) for noise in NOISES] if theorem == 3 else [])


def ordering_rows(numbers: Numbers, theorem: int) -> list[tuple[Place, str, str, dict[str, Interval], str]]:
    """Return place, metric, theta, differences and verdict of every stated ordering over N and p."""
    rows = []
    for metric in METRICS[theorem]:
        for theta in THETAS[theorem]:
            for place in places(theorem):
                if (theorem, theta, place[0]) == (2, "true", "N"):
                    continue  # with true theta the training tasks are not used
                found = numbers.differences(theorem, place, metric, theta)
                rows.append((place, metric, theta, found, verdict(found)))
    return rows


def ordering_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the paired differences over N and p with the verdicts."""
    third = theorem == 3
    minus = [f"minus {names_of(theorem).get(m, TITLES[m])}" for m in COMPARED]
    head = ["changed", "N", "p", "p / N", *(["noise", "gap", "of"] if third else ["theta"]), *minus, "C-Mixup lowest"]
    body = []
    for place, metric, theta, found, said in ordering_rows(numbers, theorem):
        setting, n, p = place
        changed = "noise" if setting.startswith("noise") else setting
        line = [changed, str(n), str(p), f"{p / n:.3g}"]
        if third:
            gap = numbers.values(3, place, "", "gap")
            noise = setting.removeprefix("noise ") if changed == "noise" else f"{base_noise():g}"
            line += [noise, f"{np.median(list(gap.values())):.2g}" if gap else "—", METRIC_TITLES[metric]]
        else:
            line.append(theta)
        body.append([*line, *(interval_text(found.get(m)) for m in COMPARED), said])
    return markdown_rows(head, body)


def base_noise() -> float:
    """Return the standard deviation of the noise at the base of Theorem 3."""
    return float(getattr(BASE[3], "noise", math.nan))


def bandwidth_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the paired differences over C-Mixup's bandwidth with the verdicts."""
    given = BASE[theorem]
    rate, rate_title = ("pairing_rate", "true partner") if theorem == 3 else ("same_cluster", "pairs of one cluster")
    minus = [f"minus {names_of(theorem).get(m, TITLES[m])}" for m in COMPARED]
    bound = ["bandwidth / bound"] if theorem == 3 else []
    head = ["bandwidth", *bound, rate_title, "of" if theorem == 3 else "theta", *minus, "C-Mixup lowest"]
    body = []
    for metric in METRICS[theorem]:
        for theta in THETAS[theorem]:
            for b in sorted((given.bandwidth, *BANDWIDTHS[theorem])):
                place = numbers.base(theorem) if b == given.bandwidth else ("bandwidth", given.n, given.p)
                found = numbers.differences(theorem, place, metric, theta, bandwidth=b)
                share = numbers.values(theorem, place, "cmixup", rate, bandwidth=b)
                line = [f"{b:.3g}"]
                if theorem == 3:
                    over = numbers.values(theorem, place, "cmixup", "bandwidth_over_bound", bandwidth=b)
                    line.append(f"{np.median(list(over.values())):.2g}" if over else "—")
                line.append(f"{np.mean(list(share.values())):.3f}" if share else "—")
                line.append(METRIC_TITLES[metric] if theorem == 3 else theta)
                body.append([*line, *(interval_text(found.get(m)) for m in COMPARED), verdict(found)])
    return markdown_rows(head, body)


def conclusions(numbers: Numbers, theorem: int) -> list[str]:
    """Return, in words, where each stated ordering holds, is open, or does not hold, and where ERM stands."""
    lines = []
    rows = ordering_rows(numbers, theorem)
    for metric in METRICS[theorem]:
        for theta in THETAS[theorem]:
            mine = [r for r in rows if r[1:3] == (metric, theta)]
            (base,) = [said for place, *_, said in mine if place[0] == "base"]
            what = METRIC_TITLES[metric] if theorem == 3 else f"{METRIC_TITLES[metric]} with {theta} theta"
            lines.append(f"- **{what}: at the base the ordering {_is(base)}.** {_where(mine)}")
    if theorem == 3:
        lines += _third(numbers)
    lines.append(_erm(numbers, theorem))
    return lines


def _is(said: str) -> str:
    return f"is {said}" if said == "open" else said


def _where(rows: Sequence[tuple[Place, str, str, dict[str, Interval], str]]) -> str:
    """Return which places have which verdict, in the order of p / N and of the noise."""
    parts = []
    for said in ("holds", "open", "does not hold"):
        at = [place_text(place) for place, *_, found in rows if found == said and place[0] != "base"]
        if at:
            parts.append(f"it {_is(said)} at {_list(at)}")
    return f"With one thing changed, {'; '.join(parts)}."


def place_text(place: Place) -> str:
    """Return what is changed from the base, in words."""
    setting, n, p = place
    return f"N = {n}" if setting == "N" else f"p = {p}" if setting == "p" else setting


def _list(words: Iterable[str]) -> str:
    found = list(dict.fromkeys(words))
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def _erm(numbers: Numbers, theorem: int) -> str:
    """Return the sentence on ERM, with which the theorem compares nothing."""
    place, parts = numbers.base(theorem), []
    for erm in ("erm", *(("erm_one_domain",) if theorem == 3 else ())):
        for theta in THETAS[theorem]:
            mine, other = (numbers.values(theorem, place, m, "mse", theta=theta) for m in ("cmixup", erm))
            if found := paired(mine, other):
                side = "ERM is lower" if found.low > 0 else "C-Mixup is lower" if found.high < 0 else "no difference"
                name = names_of(theorem).get(erm, TITLES[erm])
                of = f", {theta} theta" if theorem != 3 else ""
                parts.append(f"minus {name}{of} {interval_text(found)} ({side})")
    return f"- ERM mixes nothing, and the theorem does not compare with it. MSE of C-Mixup {'; '.join(parts)}."


def _third(numbers: Numbers) -> list[str]:
    """Return what the bandwidth's bound and the gap condition amount to."""
    place, given = numbers.base(3), BASE[3]
    over = list(numbers.values(3, place, "cmixup", "bandwidth_over_bound").values())
    lines = []
    if over:
        rate = numbers.summary(3, place, "cmixup", "pairing_rate")
        swept = ("bandwidth", given.n, given.p)
        inside = [
            f"{b:g} (true partner {_mean(numbers, b):.1%}, MSE {verdict(found)})"
            for b in BANDWIDTHS[3]
            if (v := numbers.values(3, swept, "cmixup", "bandwidth_over_bound", bandwidth=b))
            and max(v.values()) <= 1
            and (found := numbers.differences(3, swept, "mse", "estimated", bandwidth=b))
        ]
        lines.append(
            f"- The base's bandwidth is {np.median(over):.3g} times l / sqrt(log(n² / p1)) (median over seeds), and "
            f"chooses the true partner for {rate.mean if rate else math.nan:.0%} of the rows. Bandwidths of at most 1 "
            f"times that in every seed: {'; '.join(inside) or 'none'}."
        )
    gaps = numbers.values(3, place, "", "gap")
    if gaps:
        above = sum(v > 1 for v in gaps.values())
        lines.append(
            f"- The gap condition (each label nearer to its partner's than to any other, gap above 1) is met at the "
            f"base in {above} of {len(gaps)} seeds, median {np.median(list(gaps.values())):.3g}."
        )
    return lines


def _mean(numbers: Numbers, bandwidth: float) -> float:
    given = BASE[3]
    values = numbers.values(3, ("bandwidth", given.n, given.p), "cmixup", "pairing_rate", bandwidth=bandwidth)
    return float(np.mean(list(values.values())))


def limits(numbers: Numbers) -> list[str]:
    """Return the limits in which a method is another one, as checked on these runs."""
    lines = []
    for theorem in (1, 2, 3):
        given, base = BASE[theorem], numbers.base(theorem)
        swept = ("bandwidth", given.n, given.p)
        for theta in THETAS[theorem]:
            wide = numbers.values(theorem, swept, "cmixup", "mse", theta=theta, bandwidth=math.inf)
            mixup = numbers.values(theorem, base, "mixup", "mse", theta=theta)
            of = f", {theta} theta" if theorem != 3 else ""
            lines.append(_same(f"Theorem {theorem}, bandwidth infinite{of}: C-Mixup minus mixup", wide, mixup))
    given, base = BASE[1], numbers.base(1)
    swept = ("bandwidth", given.n, given.p)
    near = numbers.values(1, swept, "cmixup", "nearest_other", bandwidth=0)
    self_share = numbers.values(1, swept, "cmixup_self", "itself", bandwidth=0)
    lines.append(_share("Theorem 1, bandwidth 0: rows whose partner has the nearest other label", near))
    lines.append(
        _share("Theorem 1, bandwidth 0 and the row itself allowed: rows that are their own partner", self_share)
    )
    for theta in THETAS[1]:
        own = numbers.values(1, swept, "cmixup_self", "mse", theta=theta, bandwidth=0)
        erm = numbers.values(1, base, "erm", "mse", theta=theta)
        lines.append(_same(f"The same, {theta} theta: MSE minus ERM's", own, erm))
    place = numbers.base(3)
    largest = {m: numbers.values(3, place, m, "a_largest") for m in ("exact", "mixup")}
    smallest = numbers.values(3, place, "mixup", "a_smallest")
    rank = {m: numbers.values(3, place, m, "rank") for m in ("exact", "mixup")}
    if all(largest.values()) and smallest and all(rank.values()):
        lines.append(
            f"- Theorem 3, exact pairing and lambda 1/2: the largest singular value of the a-block over sqrt(n) is at "
            f"most {max(largest['exact'].values()):.1e} (noise {base_noise():g}), and the rank of the mixed rows at "
            f"most {max(rank['exact'].values()):.0f} (p1 = {given_p1()}). Under mixup the smallest is at least "
            f"{min(smallest.values()):.2f}, and the rank {min(rank['mixup'].values()):.0f}."
        )
    exact = numbers.values(3, (EXACT, BASE[3].n, BASE[3].p), "exact", "theta_error", theta="estimated")
    if exact:
        lines.append(f"- Theorem 3, exact pairing, {EXACT}: ‖theta_hat - theta‖² is at most {max(exact.values()):.0e}.")
    return lines


def given_p1() -> int:
    """Return the number of invariant features at the base of Theorem 3."""
    return int(getattr(BASE[3], "invariant", 0))


def _same(what: str, first: Mapping[int, float], second: Mapping[int, float]) -> str:
    found = paired(first, second)
    if found is None:
        return f"- {what}: not run."
    largest = max(abs(first[s] - second[s]) for s in set(first) & set(second))
    if largest == 0:
        return f"- {what} is 0 in each of {found.n} seeds: the same draws."
    verb = "contains" if found.low <= 0 <= found.high else "DOES NOT contain"
    return f"- {what} is {found.mean:+.1e} [{found.low:+.1e}, {found.high:+.1e}], which {verb} 0."


def _least(values: Mapping[int, float]) -> str:
    least = min(values.values())
    return "all" if least == 1 else f"{least:.2%} or more"


def _share(what: str, values: Mapping[int, float]) -> str:
    return f"- {what}: {_least(values)} in each of {len(values)} seeds." if values else f"- {what}: —"


def page(numbers: Numbers) -> str:
    """Return the text of results/theory.md."""
    n = len(numbers.values(1, numbers.base(1), "cmixup", "mse", theta="true"))
    lines = ["# Simulations of Theorems 1 to 3", "", INTRODUCTION.format(n=n), ""]
    for theorem in BASE:
        lines += [
            f"## {STATEMENTS[theorem].title}",
            "",
            STATEMENTS[theorem].says,
            "",
            STATEMENTS[theorem].simulated,
            "",
        ]
        lines += [*conclusions(numbers, theorem), ""]
        lines += [f"At the base, mean ± standard deviation, n = {n}:", "", *base_table(numbers, theorem), ""]
        lines += [f"![Theorem {theorem}: errors over N, p and bandwidth](figures/theory_{theorem}.png)", ""]
        paired_head = f"{'Errors' if theorem == 3 else 'MSE'} of C-Mixup minus those of the others, paired over seeds:"
        lines += [paired_head, "", *ordering_table(numbers, theorem), ""]
        lines += ["Over C-Mixup's bandwidth, at the base otherwise:", "", *bandwidth_table(numbers, theorem), ""]
    lines += ["## Limits", "", *limits(numbers), "", "## What this cannot show", "", CANNOT]
    return "\n".join(lines) + "\n"


def render(results: Path = RESULTS) -> dict[str, str]:
    """Return the page that `results/theory.csv` gives by its path below results/, nothing without that file."""
    numbers = read(results)
    return {"theory.md": page(numbers)} if numbers else {}
