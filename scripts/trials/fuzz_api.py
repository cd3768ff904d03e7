"""Calls of everything in `cmixup.__all__` with hostile arguments: one `InputError` line, or a right result."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import cmixup
from cmixup import InputError
from cmixup.errors import MIN_BANDWIDTH, shown
from scripts.trials import definitions as slow
from scripts.trials.attempts import judged, run_attempts, seeded
from scripts.trials.base import Trial
from scripts.trials.hostile import ANYTHING, THINGS, Draws, plain
from scripts.trials.saved_runs import load_run_call

KERNELS = ("gaussian", "tophat", "laplace", "cosine")
METHODS = ("auto", "cells", "uniform", "kd", "cdf", "sparse", "rows", "dense")
DRAWS = 400  # of one row where draws are counted
UNLIKELY = 1e-9


class Wrong(Exception):
    """A result that is not what the definition gives."""


def same(what: str, found: Any, wanted: Any, rtol: float = 1e-7, atol: float = 1e-9) -> None:
    """Raise `Wrong` unless two arrays are alike."""
    got, want = np.asarray(found, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    if got.shape != want.shape or not np.allclose(got, want, rtol, atol, equal_nan=True):
        raise Wrong(f"{what}: {shown(got)} for {shown(want)}")


def check(true: object, what: str) -> None:
    """Raise `Wrong` unless something is true."""
    if not true:
        raise Wrong(what)


def call_mix(d: Draws) -> None:
    """`mix` of tensors, and of trees of them."""
    shape = d.choose((3,), (3, 2), (2, 3, 2), (0,), (3, 0), (1,))
    dtype = d.choose(torch.float32, torch.float64, torch.float16, torch.bfloat16)

    def state() -> Any:
        # Halved ends of the range: states whose difference overflows are not promised.
        values = np.clip(d.values(shape), -torch.finfo(dtype).max / 4, torch.finfo(dtype).max / 4)
        tensor = torch.from_numpy(values).to(dtype)
        return tensor.transpose(0, -1).contiguous().transpose(0, -1) if tensor.ndim > 1 else tensor

    def other() -> Any:
        return d.choose(torch.zeros(2, 5), torch.zeros(shape), torch.zeros(shape).double(), np.zeros(shape),
                        d.bad_labels(3), (state(), state()), {"a": state()})  # fmt: skip

    first, second = d.give("first", state, other), d.give("second", state, other)
    weights = d.rng.random(shape[: d.choose(0, 1)])
    lam = d.give("lam", lambda: d.choose(float(d.rng.random()), 0.0, 1, weights if weights.ndim else 0.5,
                                         torch.from_numpy(np.asarray(weights)), np.float32(0.25)))  # fmt: skip
    result = cmixup.mix(first, second, lam)
    if isinstance(first, torch.Tensor):
        check(result.dtype == first.dtype and result.shape == first.shape, f"mix gives {result.dtype} {result.shape}")
        weight = lam.detach().numpy() if isinstance(lam, torch.Tensor) else lam
        weight = float(weight) if np.ndim(weight) == 0 else weight
        ends = [part.detach().double().numpy() for part in (first, second)]
        step = torch.finfo(first.dtype).eps * 4
        scale = max((np.abs(end[np.isfinite(end)]).max(initial=0.0) for end in ends), default=0.0)
        tiny = torch.finfo(first.dtype).tiny
        if all(np.isfinite(end).all() for end in ends):
            same("mix", result.detach().double().numpy(), slow.mixed(*ends, weight), step, step * scale + tiny)


def call_beta(d: Draws) -> None:
    """`Beta` and its draws."""
    lam = cmixup.Beta(d.give("alpha", lambda: d.choose(0.01, 2.0, 1e3, 1)), d.give("lam_per", lambda: "example"))
    n = d.give("n", lambda: d.choose(0, 1, 50))
    drawn = lam.sample(n, d.give("rng", lambda: d.choose(None, d.rng, torch.Generator())))
    check(drawn.shape == (n,) and drawn.dtype == torch.float32, f"sample gives {drawn.dtype} {tuple(drawn.shape)}")
    check(((drawn >= 0) & (drawn <= 1)).all(), f"lambda {drawn}")
    repr(lam)


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
        made = {"period": d.give("period", lambda: d.choose(positive, 3.0, [*positive[:-1], None] if width > 1 else 1)),
                "scale": d.give("scale", lambda: d.choose(None, positive))}  # fmt: skip
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


def check_draws(drawn: Any, rows: np.ndarray | None, n: int, count: int) -> None:
    """Raise `Wrong` unless partners `(B,)` are possible ones of `rows` `(B, n)`, and of `n` rows at all."""
    partners = np.asarray(drawn)
    check(partners.shape == (count,) and partners.dtype == np.int64, f"partners {partners.dtype} {partners.shape}")
    check(((partners >= 0) & (partners < n)).all(), f"partners {partners} of {n} rows")
    if rows is not None:
        check((rows[np.arange(count), partners] > 0).all(), f"partners {partners} of probability 0")


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
    bandwidth = d.give("bandwidth", lambda: d.choose(spread * float(d.rng.lognormal(0, 2)), spread, 0.5, 0, math.inf, "auto",
                                                     ("fraction", 0.5), ["std", 1e-1], ("median", 0.5)))  # fmt: skip
    d.hostile |= is_cosine(kernel) or bool(made) or not isinstance(bandwidth, float | int)
    method = d.give("method", lambda: d.choose("auto", "auto", *METHODS))
    d.hostile |= not (isinstance(method, str) and method == "auto")
    more: dict[str, Any] = {}
    if d.rnd.random() < 0.2:
        more["memory_budget"] = d.give("memory_budget", lambda: d.choose(0, 100, 1e6, 1 << 30))
        d.hostile = True
    if d.rnd.random() < 0.1:
        more["torch_form"] = d.give("torch_form", lambda: d.choose(None, isinstance(labels, torch.Tensor)))
        d.hostile = True
    sampler = cmixup.PartnerSampler(labels, bandwidth, kernel=kernel, method=method, space=space, **more)
    n, s = len(plain(labels)), sampler.bandwidth
    check(math.isinf(s) or s >= 0, f"bandwidth {s}")
    if isinstance(bandwidth, tuple | list) and bandwidth[0] == "std" and not made and kernel != "cosine":
        same("bandwidth", s, float(bandwidth[1]) * np.std(plain(labels)), 1e-6, 0)
    check(len(sampler) == n and sampler.nbytes >= 0 and "\n" not in repr(sampler), f"{sampler!r} of {n} labels")
    rows = expected(labels, labels, s, kernel, made)
    rng = d.give("rng", lambda: d.choose(np.random.default_rng(1), torch.Generator()))
    what = d.rnd.randrange(6)
    if what == 0:
        anchors = d.give(
            "anchors", lambda: d.rng.integers(0, n, 4), (*ANYTHING, [n], [-1], [0.5], np.zeros((1, 1), int))
        )
        check_draws(
            sampler.draw(anchors, rng), None if rows is None else rows[np.asarray(anchors, int)], n, len(anchors)
        )
    elif what == 1:
        check_draws(sampler.epoch(rng), rows, n, n)
    elif what == 2:
        anchor = d.give("anchor", lambda: int(d.rng.integers(n)))
        found = sampler.probabilities(anchor)
        if rows is not None:
            same("probabilities", found, rows[int(anchor)])
    elif what == 3:
        sample, seed = d.give("sample", lambda: d.choose(None, 1, n, n + 5)), d.give("seed", lambda: 3)
        found, own = sampler.effective_partners(sample, seed), sampler.self_probability(sample, seed)
        check(len(found) == len(own) == (n if sample is None else min(n, sample)), f"{len(found)} rows of {n}")
        if rows is not None and len(found) == n:
            same("effective partners", found, slow.effective(rows), 1e-6)
            same("self probability", own, np.diag(rows))
    elif what == 4:
        points = plain(labels)[:2] + d.choose(0.0, 0.0, 1.0, 1e100)
        points = points if width > 1 else points[:, 0]
        queries = d.give("queries", lambda: points, lambda: d.bad_labels(2, width))
        drawn = sampler.draw_labels(queries, rng)
        try:
            direct = expected(labels, queries, s, kernel, made)
        except (ValueError, ZeroDivisionError):
            direct = None
        check_draws(drawn, direct, n, len(plain(queries)))
    elif rows is not None:
        partners = np.asarray(sampler.draw(np.zeros(DRAWS, int), np.random.default_rng(d.rnd.randrange(1 << 30))))
        share = slow.strange_share(np.bincount(partners, minlength=n), rows[0].astype(np.float64))
        check(share > UNLIKELY, f"draws of row 0: chi-square says {share:.2g}, counts {np.bincount(partners).tolist()}")


def call_batch_sampler(d: Draws) -> None:
    """`BatchPartnerSampler`: rows and draws of two batches."""
    n, m, width = d.choose(1, 4, 7), d.choose(1, 5), d.choose(0, 0, 2, 4)
    kernel = d.give("kernel", lambda: d.choose(*(KERNELS if width > 1 else KERNELS[:3])))
    period = d.give("period", lambda: d.choose(None, None, np.full(max(width, 1), 7.0)), (None, None, *ANYTHING))
    candidates = d.give("candidates", lambda: d.choose("b2", "b1+b2"))
    bandwidth = d.give("bandwidth", lambda: d.choose(0, 0.5, 30.0, math.inf, 1e-9))
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
    bandwidth = d.give("bandwidth", lambda: d.choose(0, 1.0, 1e-6, "auto", math.inf))
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


def call_cmixup(d: Draws) -> None:
    """`CMixup` of a batch in one of its forms."""
    n = d.choose(1, 2, 6)
    x = d.give("x", lambda: d.choose(torch.randn(n, 2), torch.randn(n, 1, 3).double()), lambda: d.bad_labels(n, 2))
    y = d.give("y", lambda: torch.from_numpy(d.values((n, *d.choose((), (1,), (2,))))), lambda: d.bad_labels(n))
    mixing = cmixup.CMixup(
        d.give("bandwidth", lambda: d.choose(1.0, 0, math.inf, "auto")),
        d.give("alpha", lambda: 2.0),
        d.give("layer", lambda: None),
        seed=d.give("seed", lambda: d.choose(None, 3)),
        labels=d.give("labels", lambda: None, lambda: d.bad_labels(5)),
        space=given_space(d, 1)[0],
        lam_per=d.give("lam_per", lambda: d.choose("example", "batch")),
        labels_getter=d.give("labels_getter", lambda: "default"),
        keep=d.give("keep", tuple),
        return_mix=True,
    )
    d.hostile |= any(key in d.log for key in ("scale", "period", "ranks")) or mixing.space.needs_labels
    repr(mixing)
    if d.rnd.random() < 0.2:
        mixing.eval()
    if d.rnd.random() < 0.5:
        mixed_x, mixed_y, mixed = mixing(x, y)
    else:
        (mixed_x, mixed_y), mixed = mixing((x, y))
    if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
        return
    check_draws(mixed.partner, None, len(x), len(x))
    check(((mixed.lam >= 0) & (mixed.lam <= 1)).all(), f"lambda {mixed.lam}")
    lam = mixed.lam.double().numpy()
    for what, given, found in (("x", x, mixed_x), ("y", y, mixed_y)):
        values = given.detach().double().numpy()
        if np.isfinite(values).all() and np.abs(values).max(initial=0) < 1e30:
            wanted = slow.mixed(values, values[mixed.partner.numpy()], lam)
            precision = torch.finfo(found.dtype).eps if found.is_floating_point() else 0.0
            same(what, found.detach().double().numpy(), wanted, 8 * precision,
                 max(8 * precision, 1e-7 * (found.dtype != torch.float64)) * np.abs(values).max(initial=0) + 1e-300)  # fmt: skip


def call_at(d: Draws) -> None:
    """`mixing_at` in a small model."""
    n = 4
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    model = d.give("model", lambda: net)
    layer = d.give("layer", lambda: d.choose(None, "0", "1", "2"))
    mixing = d.give("mixing", lambda: cmixup.CMixup(1.0, seed=0, return_mix=True))
    labels = d.give("labels", lambda: torch.from_numpy(d.rng.normal(size=n)), lambda: d.bad_labels(n))
    x = torch.randn(n, 2)
    with cmixup.mixing_at(model, layer, mixing, labels) as (mixed_y, mixed):
        found = net(x)
    state: torch.Tensor = x

    def mix_state() -> torch.Tensor:
        return cmixup.mix(state, state[mixed.partner], mixed.lam)

    state = mix_state() if layer is None else state
    for number, part in enumerate(net):
        state = part(state)
        state = mix_state() if layer == str(number) else state
    same("output", found.detach().numpy(), state.detach().numpy(), 1e-6, 1e-6)
    values = plain(labels)[:, 0]
    wanted = slow.mixed(values, values[mixed.partner.numpy()], mixed.lam.double().numpy())
    same("labels", plain(mixed_y)[:, 0], wanted, 1e-6, 1e-7 * np.abs(values).max())


def call_pairs(d: Draws) -> None:
    """`PairDataset` and `PairBatchSampler`: an epoch takes every row once, and rows are mixed as their pairs say."""
    n = d.choose(1, 3, 8)
    x, y = torch.randn(n, 2), torch.from_numpy(d.rng.normal(size=n))
    rows = d.give("dataset", lambda: list(zip(x, y, strict=True)))
    pairs = cmixup.PairDataset(
        rows,
        d.give("labels", lambda: y, lambda: d.bad_labels(n)),
        d.give("bandwidth", lambda: d.choose(1.0, 0, "auto")),
        d.give("alpha", lambda: 2.0),
        seed=d.give("seed", lambda: d.choose(None, 1)),
        labels_getter=d.give("labels_getter", lambda: "default"),
        keep=d.give("keep", tuple),
        return_mix=d.give("return_mix", lambda: False),
    )
    index = d.give("index", lambda: d.choose(0, -1, n - 1, np.int64(0)))
    try:
        pairs[index]
    except IndexError:
        check(isinstance(index, int | np.integer) and not -n <= index < n, f"IndexError for {index!r} of {n}")
        raise InputError("index of a sequence") from None
    batches = cmixup.PairBatchSampler(
        pairs,
        d.give("batch_size", lambda: d.choose(1, 3, 100)),
        shuffle=d.give("shuffle", lambda: d.choose(True, False)),
        drop_last=d.give("drop_last", lambda: False),
        seed=d.give("batch seed", lambda: d.choose(None, 5)),
        rank=d.give("rank", lambda: None),
        world=d.give("world", lambda: None),
    )
    batches.set_epoch(d.give("epoch", lambda: d.choose(0, 7)))
    epoch = [pair for batch in batches for pair in batch]
    check(len(list(batches)) == len(batches), f"{len(batches)} batches")
    if batches.world == 1 and not batches.drop_last:
        check(sorted(pair.row for pair in epoch) == list(range(n)), f"rows {epoch}")
    if not d.hostile:
        for (mixed_x, mixed_y), (row, partner, lam) in zip(pairs.__getitems__(epoch), epoch, strict=True):
            same("x", mixed_x, lam * x[row].numpy() + (1 - lam) * x[partner].numpy(), 1e-5, 1e-6)
            same("y", mixed_y, lam * float(y[row]) + (1 - lam) * float(y[partner]), 1e-5, 1e-6)


def call_shown(d: Draws) -> None:
    """What errors say of values: a short line whatever they are."""
    text = shown(d.give("value", lambda: d.labels(3), ANYTHING))
    check("\n" not in text and len(text) < 100, f"shown gives {text!r}")


def call_space(d: Draws) -> None:
    """`LabelSpace` alone."""
    space = cmixup.LabelSpace(
        d.give("scale", lambda: d.choose(None, 2.0, [1.0, 3])), d.give("period", lambda: d.choose(None, 360, [1, None])),
        ranks=d.give("ranks", lambda: False),
    )  # fmt: skip
    check("\n" not in repr(space), f"{space!r}")


TARGETS: dict[str, Callable[[Draws], None]] = {
    "BatchPartnerSampler": call_batch_sampler,
    "Beta": call_beta,
    "CMixup": call_cmixup,
    "InputError": call_shown,
    "LabelSpace": call_space,
    "PairBatchSampler": call_pairs,
    "PairDataset": call_pairs,
    "PartnerSampler": call_sampler,
    "bandwidth_for_fraction": call_fraction,
    "diagnose": call_diagnose,
    "load_run": load_run_call,
    "mix": call_mix,
    "mixing_at": call_at,
}
#: How often each is called, of so many calls.
SHARES = {
    "PartnerSampler": 8,
    "mix": 3,
    "CMixup": 3,
    "BatchPartnerSampler": 3,
    "diagnose": 2,
    "bandwidth_for_fraction": 2,
}


def attempt(number: int, seed: int, targets: Sequence[str]) -> str:
    """Make one call; return what was wrong with it, or an empty text."""
    rng, rnd = seeded(seed, number)
    d, name = Draws(rng, rnd), rnd.choice(targets)
    torch.manual_seed(number)
    wrong = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            TARGETS[name](d)
    except Wrong as error:
        wrong = f"wrong answer: {error}"
    except Exception as error:
        wrong = judged(error)
        if not wrong and not d.hostile:
            wrong = f"refused what is right: {error}"
    given = ", ".join(f"{key}={shown(value)}" for key, value in d.log.items())
    return f"call {number} of seed {seed}: {name}: {wrong}; {given}" if wrong else ""


def run(count: int, seed: int, folder: Path) -> Trial:
    """Make `count` calls."""
    torch.set_num_threads(1)
    targets = [name for name in cmixup.__all__ for _ in range(SHARES.get(name, 1))]
    what = "calls of the public API with hostile arguments: one line of InputError, or what the definition gives"
    return run_attempts("fuzz_api", what, partial(attempt, seed=seed, targets=targets), count, folder)
