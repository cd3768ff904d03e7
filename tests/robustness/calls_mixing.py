"""Calls of what mixes, against its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

import cmixup
from cmixup import InputError
from cmixup.errors import shown
from tests.robustness import definitions as slow
from tests.robustness.calls_sampling import given_space
from tests.robustness.checks import check, check_draws, same
from tests.robustness.hostile import ANYTHING, Draws, plain

NO_FUNCTIONS = tuple(thing for thing in ANYTHING if not callable(thing))  # whose errors are the caller's own


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
        return d.choose(
            torch.zeros(2, 5),
            torch.zeros(shape),
            torch.zeros(shape).double(),
            np.zeros(shape),
            d.bad_labels(3),
            (state(), state()),
            {"a": state()},
        )

    first, second = d.give("first", state, other), d.give("second", state, other)
    weights = d.rng.random(shape[: d.choose(0, 1)])
    lam = d.give(
        "lam",
        lambda: d.choose(
            float(d.rng.random()),
            0.0,
            1,
            weights if weights.ndim else 0.5,
            torch.from_numpy(np.asarray(weights)),
            np.float32(0.25),
        ),
    )
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
            same(
                "mix", result.detach().double().numpy(), slow.mixed(ends[0], ends[1], weight), step, step * scale + tiny
            )


def call_beta(d: Draws) -> None:
    """`Beta` and its draws."""
    lam = cmixup.Beta(d.give("alpha", lambda: d.choose(0.01, 2.0, 1e3, 1)), d.give("lam_per", lambda: "example"))
    n = d.give("n", lambda: d.choose(0, 1, 50))
    drawn = lam.sample(n, d.give("rng", lambda: d.choose(None, d.rng, torch.Generator())))
    check(drawn.shape == (n,) and drawn.dtype == torch.float32, f"sample gives {drawn.dtype} {tuple(drawn.shape)}")
    check(((drawn >= 0) & (drawn <= 1)).all(), f"lambda {drawn}")
    repr(lam)


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
        labels_getter=d.give("labels_getter", lambda: "default", NO_FUNCTIONS),
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
    if any(each.layout != torch.strided or each.is_meta for each in (x, y, mixed_x, mixed_y)):
        return  # without values, or passed through unmixed: there is nothing to compare
    check_draws(mixed.partner, None, len(y), len(y))
    check(((mixed.lam >= 0) & (mixed.lam <= 1)).all(), f"lambda {mixed.lam}")
    if not mixing.training and len(x) != len(y):
        return  # passed through: nothing is mixed
    lam = mixed.lam.double().numpy()
    for what, given, found in (("x", x, mixed_x), ("y", y, mixed_y)):
        values = given.detach().double().numpy()
        if np.isfinite(values).all() and np.abs(values).max(initial=0) < 1e30:
            wanted = slow.mixed(values, values[mixed.partner.numpy()], lam)
            precision = torch.finfo(found.dtype).eps if found.is_floating_point() else 0.0
            same(
                what,
                found.detach().double().numpy(),
                wanted,
                8 * precision,
                max(8 * precision, 1e-7 * (found.dtype != torch.float64)) * np.abs(values).max(initial=0) + 1e-300,
            )


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
        labels_getter=d.give("labels_getter", lambda: "default", NO_FUNCTIONS),
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
        d.give("scale", lambda: d.choose(None, 2.0, [1.0, 3])),
        d.give("period", lambda: d.choose(None, 360, [1, None])),
        ranks=d.give("ranks", lambda: False),
    )
    check("\n" not in repr(space), f"{space!r}")
