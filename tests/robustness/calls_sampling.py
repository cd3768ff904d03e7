"""Calls of samplers and of what says how a bandwidth acts, against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

import cmixup
from cmixup.errors import MIN_BANDWIDTH
from tests.robustness import definitions as slow
from tests.robustness.checks import check, check_draws, same
from tests.robustness.hostile import ANYTHING, THINGS, Draws, plain

KERNELS = ("gaussian", "tophat", "laplace", "cosine")
METHODS = ("auto", "cells", "uniform", "kd", "cdf", "sparse", "rows")
DRAWS = 400  # of one row where draws are counted
UNLIKELY = 1e-9


def given_space(d: Draws, width: int) -> tuple[Any, dict[str, Any]]:
    """Return a `LabelSpace` or None, and what it was made with."""
    kind = d.rnd.randrange(6)
    if kind < 3:
        return d.give("space", lambda: None, THINGS), {}
    positive = [float(v) for v in d.choose([0.5] * width, list(d.rng.uniform(0.1, 5, width)))]
    if kind == 3:
        made = {"scale": d.give("scale", lambda: d.choose("std", positive, 2.0))}
    elif kind == 4:
        made = {"ranks": d.give("ranks", lambda: True)}
    else:
        made = {
            "period": d.give("period", lambda: d.choose(positive, 3.0, [*positive[:-1], None] if width > 1 else 1)),
            "scale": d.give("scale", lambda: d.choose(None, positive)),
        }
    return cmixup.LabelSpace(**made), made


def coordinates(values: np.ndarray, among: np.ndarray, made: dict[str, Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return what is compared of labels `(n, d)`, and the periods, both in units of the scale."""
    width = values.shape[1]
    period, scale = made.get("period"), made.get("scale")
    if made.get("ranks"):
        known = slow.ranks(among, among)
        values = np.stack(  # values between those of the data are placed between their ranks
            [np.interp(v, np.sort(a), np.sort(k)) for v, a, k in zip(values.T, among.T, known.T, strict=True)], axis=1
        )
    turn = None
    if period is not None:
        every = list(period) if np.ndim(period) else [float(period)] * width
        turn = np.array([float(p or 0) for p in every] * (width if len(every) == 1 < width else 1))
        values = np.stack([np.mod(v, p) % p if p else v for v, p in zip(values.T, turn, strict=True)], axis=1)
    if isinstance(scale, str):
        deviation = among.std(axis=0)
        scale = np.where(deviation > 0, deviation, 1.0)
    scale = np.ones(width) if scale is None else np.broadcast_to(np.asarray(scale, dtype=np.float64), width)
    return values / scale, None if turn is None or not turn.any() else turn / scale


def expected(labels: Any, anchors: Any, s: float, kernel: str, made: dict[str, Any]) -> np.ndarray | None:
    """Return the rows P by definition, or None where rounding decides."""
    among = plain(labels)
    points, period = coordinates(among, among, made)
    queries = coordinates(plain(anchors), among, made)[0]
    if kernel == "cosine":
        points, queries = slow.units(points), slow.units(queries)
    distance = slow.distances(queries, points, period)
    rounded = bool(made) or kernel == "cosine" or points.shape[1] > 1
    close = (np.abs(distance - s) <= 1e-9 * s) if 0 < s < math.inf else np.zeros(1, bool)
    if kernel == "tophat" and close.any():
        return None
    large = float(np.abs(points).max())
    if rounded and s <= 1e-8 * max(large, MIN_BANDWIDTH):  # a gap's own rounding is as large as the bandwidth
        return None
    return slow.probabilities(distance, s, kernel)


def spread_of(labels: Any) -> float:
    """Return the standard deviation of labels where kernels can use it, else 1."""
    if not isinstance(labels, np.ndarray) or labels.dtype.kind != "f" or not np.isfinite(labels).all():
        return 1.0
    with np.errstate(over="ignore"):
        found = float(np.std(labels, dtype=np.longdouble)) if labels.size else 1.0
    return found if MIN_BANDWIDTH * 1e9 < found < 1e140 else 1.0


def is_cosine(kernel: Any) -> bool:
    """Return whether the kernel is the one of directions, which refuses some right labels."""
    return isinstance(kernel, str) and kernel == "cosine"


def call_sampler(d: Draws) -> None:
    """`PartnerSampler`: its draws, its rows and what it says of them."""
    n, width = d.choose(1, 2, 5, 9, 9, 30), d.choose(0, 0, 1, 2, 3, 5)
    labels = d.give("labels", lambda: d.labels(n, width), lambda: d.bad_labels(n, width))
    kernel = d.give("kernel", lambda: d.choose(*(KERNELS if width > 1 else KERNELS[:3])))
    space, made = given_space(d, max(width, 1))
    spread = spread_of(labels)
    forms = ("auto", ("fraction", 0.5), ["std", 1e-1], ("median", 0.5))
    bandwidth = d.give(
        "bandwidth", lambda: d.choose(*(spread * d.rng.lognormal(-0.5, 1, 5)).tolist(), 0, math.inf, *forms)
    )
    method = d.give("method", lambda: d.choose("auto", "auto", *METHODS))
    more: dict[str, Any] = {}
    if d.rnd.random() < 0.2:
        more["memory_budget"] = d.give("memory_budget", lambda: d.choose(0, 100, 1e6, 1 << 30))
    if d.rnd.random() < 0.1:
        more["torch_form"] = d.give("torch_form", lambda: d.choose(None, isinstance(labels, torch.Tensor)))
    # Some right arguments do not go together.
    d.hostile |= is_cosine(kernel) or bool(made) or bool(more) or not isinstance(bandwidth, float | int)
    d.hostile |= not (isinstance(method, str) and method == "auto")
    sampler = cmixup.PartnerSampler(labels, bandwidth, kernel=kernel, method=method, space=space, **more)
    n, s = len(plain(labels)), sampler.bandwidth
    check(math.isinf(s) or s >= 0, f"bandwidth {s}")
    if isinstance(bandwidth, tuple | list) and bandwidth[0] == "std" and not made and kernel != "cosine":
        same("bandwidth", s, float(bandwidth[1]) * np.std(plain(labels)), 1e-6, 0)
    check(len(sampler) == n and sampler.nbytes >= 0 and "\n" not in repr(sampler), f"{sampler!r} of {n} labels")
    rows = expected(labels, labels, s, kernel, made)
    if d.rnd.random() < 0.6:
        check_partners(d, sampler, labels, rows, made)
    else:
        check_rows(d, sampler, rows)


def check_partners(d: Draws, sampler: Any, labels: Any, rows: np.ndarray | None, made: dict[str, Any]) -> None:
    """Draw partners in one of the ways, and compare them with the rows P."""
    n, what = len(sampler), d.rnd.randrange(4)
    rng = d.give("rng", lambda: d.choose(np.random.default_rng(1), torch.Generator()))
    if what == 0:
        wrong = (*ANYTHING, [n], [-1], [0.5], np.zeros((1, 1), int))
        anchors = d.give("anchors", lambda: d.rng.integers(0, n, 4), wrong)
        drawn = sampler.draw(anchors, rng)
        check_draws(drawn, None if rows is None else rows[np.asarray(anchors, int)], n, len(anchors))
    elif what == 1:
        check_draws(sampler.epoch(rng), rows, n, n)
    elif what == 2:
        points = plain(labels)[:2] + d.choose(0.0, 0.0, 1.0, 1e100)
        points = points if points.shape[1] > 1 else points[:, 0]
        queries = d.give("queries", lambda: points, lambda: d.bad_labels(2, plain(labels).shape[1]))
        drawn = sampler.draw_labels(queries, rng)
        try:
            direct = expected(labels, queries, sampler.bandwidth, sampler.kernel, made)
        except (ValueError, ZeroDivisionError):
            direct = None
        check_draws(drawn, direct, n, len(plain(queries)))
    elif rows is not None:
        partners = np.asarray(sampler.draw(np.zeros(DRAWS, int), np.random.default_rng(d.rnd.randrange(1 << 30))))
        share = slow.strange_share(np.bincount(partners, minlength=n), rows[0].astype(np.float64))
        check(share > UNLIKELY, f"draws of row 0: chi-square says {share:.2g}, counts {np.bincount(partners).tolist()}")


def check_rows(d: Draws, sampler: Any, rows: np.ndarray | None) -> None:
    """Compare what a sampler says of its rows with the rows P."""
    n = len(sampler)
    if d.rnd.random() < 0.5:
        anchor = d.give("anchor", lambda: int(d.rng.integers(n)))
        found = sampler.probabilities(anchor)
        if rows is not None:
            same("probabilities", found, rows[int(anchor)])
        return
    sample, seed = d.give("sample", lambda: d.choose(None, 1, n, n + 5)), d.give("seed", lambda: 3)
    found, own = sampler.effective_partners(sample, seed), sampler.self_probability(sample, seed)
    check(len(found) == len(own) == (n if sample is None else min(n, sample)), f"{len(found)} rows of {n}")
    if rows is not None and len(found) == n:
        same("effective partners", found, slow.effective(rows), 1e-6)
        same("self probability", own, np.diag(rows))


def call_batch_sampler(d: Draws) -> None:
    """`BatchPartnerSampler`: rows and draws of two batches."""
    n, m, width = d.choose(1, 4, 7), d.choose(1, 5, 9), d.choose(0, 0, 2, 4)
    kernel = d.give("kernel", lambda: d.choose(*(KERNELS if width > 1 else KERNELS[:3])))
    period = d.give("period", lambda: d.choose(None, None, np.full(max(width, 1), 7.0)), (None, None, *ANYTHING))
    candidates = d.give("candidates", lambda: d.choose("b2", "b1+b2"))
    bandwidth = d.give("bandwidth", lambda: d.choose(0, 30.0, math.inf, 1e-9, *d.rng.lognormal(0, 1, 4).tolist()))
    shape = (width,) if width else ()
    make = d.choose(np.asarray, torch.from_numpy)
    first = d.give("first", lambda: make(np.abs(d.values((n, *shape))) % 7), lambda: d.bad_labels(n, width))
    second = d.give("second", lambda: make(np.abs(d.values((m, *shape))) % 7), lambda: d.bad_labels(m, width))
    d.hostile |= is_cosine(kernel) or period is not None
    sampler = cmixup.BatchPartnerSampler(bandwidth, candidates=candidates, kernel=kernel, period=period)
    rows = np.asarray(sampler.probabilities(first, second))
    a, b = plain(first), plain(second)
    pool = b if candidates == "b2" else np.concatenate([a, b])
    check(rows.shape == (len(a), len(pool)), f"rows {rows.shape} of {len(a)} and {len(pool)}")
    made = {} if period is None else {"period": np.broadcast_to(np.asarray(period, float), a.shape[1:]).tolist()}
    if period is None or (
        (pool >= 0).all() and (pool < np.where(np.asarray(made["period"]) == 0, np.inf, made["period"])).all()
    ):
        direct = expected(pool, a, sampler.bandwidth, kernel, made)
        if direct is not None:
            same("rows", rows, direct)
    drawn = sampler.draw(first, second, d.give("rng", lambda: d.choose(d.rng, torch.Generator())))
    check_draws(drawn, rows, len(pool), len(a))


def call_diagnose(d: Draws) -> None:
    """`diagnose` against medians over all rows."""
    n, width = d.choose(1, 3, 8, 20), d.choose(0, 0, 2)
    labels = d.give("labels", lambda: d.labels(n, width), lambda: d.bad_labels(n, width))
    bandwidth = d.give(
        "bandwidth", lambda: d.choose(0, 1.0, 1e-6, "auto", math.inf, spread_of(labels), spread_of(labels) / 3)
    )
    kernel = d.give("kernel", lambda: d.choose(*(KERNELS if width > 1 else KERNELS[:3])))
    space, made = given_space(d, max(width, 1))
    d.hostile |= is_cosine(kernel) or bool(made)
    report = cmixup.diagnose(labels, bandwidth, kernel=kernel, seed=d.give("seed", lambda: 0), space=space)
    rows, n = expected(labels, labels, report.bandwidth, kernel, made), len(plain(labels))
    check(report.n == n and report.verdict, f"{report} of {n} labels")
    if rows is None:
        return
    same("effective fraction", report.effective_fraction, np.median(slow.effective(rows)) / n, 1e-6)
    same("self probability", report.self_probability, np.median(np.diag(rows)), 1e-6)
    if kernel != "cosine":
        points, period = coordinates(plain(labels), plain(labels), made)
        gap = slow.distances(points, points, period)
        scale = float(gap.max())
        same("pair gap", report.pair_gap, (rows * gap).sum(1).mean(), 1e-5, 1e-9 * scale + MIN_BANDWIDTH)
        same("uniform gap", report.uniform_gap, gap.mean(), 1e-6, 1e-9 * scale + MIN_BANDWIDTH)


def call_fraction(d: Draws) -> None:
    """`bandwidth_for_fraction`: wide enough at the answer, and too narrow just below it."""
    n, width = d.choose(1, 2, 5, 20), d.choose(0, 0, 2)
    labels = d.give("labels", lambda: d.labels(n, width), lambda: d.bad_labels(n, width))
    fraction = d.give("fraction", lambda: d.choose(0.2, 0.5, 0.9, 1, 1e-3))
    kernel = d.give("kernel", lambda: d.choose(*(KERNELS if width > 1 else KERNELS[:3])))
    space, made = given_space(d, max(width, 1))
    d.hostile |= is_cosine(kernel) or bool(made)
    s = cmixup.bandwidth_for_fraction(labels, fraction, kernel=kernel, seed=d.give("seed", lambda: 0), space=space)
    check(s == 0 or s >= MIN_BANDWIDTH, f"bandwidth {s}")
    values = plain(labels)
    if kernel == "cosine" or math.isinf(s) or s < 1e-8 * np.abs(values).max():
        return
    points, period = coordinates(values, values, made)
    distance = slow.distances(points, points, period)
    distance[distance < MIN_BANDWIDTH] = 0

    def reached(at: float) -> float:
        return float(np.median(slow.effective(slow.probabilities(distance, at, kernel)))) / len(values)

    check(reached(s * (1 + 1e-9)) >= float(fraction) * (1 - 1e-9), f"fraction {reached(s)} at {s}")
    if s > MIN_BANDWIDTH:
        check(reached(s * 0.999) < float(fraction) * (1 + 1e-9), f"fraction {reached(s * 0.999)} below {s}")
