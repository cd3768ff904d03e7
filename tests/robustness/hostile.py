"""Arguments that a caller should not give, beside some that are odd and right.

hypothesis was tried in the place of these lists, with the same definitions and the same seconds: of eleven planted
faults these find seven, hypothesis four where it draws from the lists and one by strategies of its own, as it makes a
third to a half as many calls. An attempt is its number alone, so it is seen again without shrinking.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

#: Numbers that break code: out of range, not finite, at the ends of float64, of other types.
NUMBERS: tuple[Any, ...] = (
    0,
    1,
    -1,
    2,
    3,
    7,
    True,
    False,
    0.0,
    -0.0,
    0.5,
    2.5,
    -2.5,
    1e-9,
    1e9,
    5e-324,
    1e-320,
    1e-300,
    1e-160,
    1e-150,
    1e-149,
    1e149,
    1e150,
    1e154,
    1e200,
    -1e200,
    1e308,
    1.7976931348623157e308,
    float("nan"),
    float("inf"),
    -float("inf"),
    10**15,
    2**31,
    2**32,
    2**63,
    2**64,
    -(2**63),
    10**400,
    -(10**400),
    np.float16(0.5),
    np.float32(0.3),
    np.float64("nan"),
    np.int8(3),
    np.int64(-3),
    np.uint64(2**63),
    np.bool_(True),
    np.array(0.5),
    np.array(2),
    Fraction(1, 3),
    Decimal("0.5"),
    0.5j,
    torch.tensor(0.5),
    torch.tensor(2),
)
#: What is no number at all.
THINGS: tuple[Any, ...] = (
    None,
    "",
    "0.5",
    "auto",
    "mean",
    "\n\0",
    "x" * 10_000,
    b"1",
    (),
    [],
    {},
    set(),
    frozenset({1}),
    [0.5],
    (0.5, 0.2),
    [[1, 2], [3]],
    {"a": 1},
    range(3),
    object(),
    int,
    len,
    lambda: 0,
    np.array([]),
    np.array([0.5, 0.2]),
    np.array(["a"]),
    np.array([None, 1], dtype=object),
    np.array([1 + 1j]),
    np.array(["2020-01-01"], "datetime64[D]"),
    np.zeros(2, [("a", "f8")]),
    np.ma.masked_all(3),  # type: ignore[no-untyped-call]
    torch.zeros(0),
    torch.zeros(2, 3),
    torch.zeros(3, dtype=torch.long),
    torch.zeros(3, device="meta"),
    torch.zeros(3).to_sparse(),
    torch.zeros(3, dtype=torch.cfloat),
    torch.zeros(3, requires_grad=True),
    torch.Generator(),
    np.random.default_rng(0),
    random.Random(0),  # noqa: S311
    nn.Identity(),
    datetime.date(2020, 1, 1),
    ...,
    NotImplemented,
    slice(3),
    ("fraction", 0.2),
    ("fraction", 2),
    ("fraction", None),
    ("std", 1e200),
    ("std", 0),
    ("std",),
    ("median", 0.1),
    ("median", float("nan")),
    ["std", 0.5],
    iter([1.0]),
)
ANYTHING = NUMBERS + THINGS


class Draws:
    """The arguments of one call: each is right, or with some probability hostile.

    Attributes:
        hostile: whether one of them was.
        log: what was given, by argument.
    """

    def __init__(self, rng: np.random.Generator, rnd: random.Random) -> None:
        self.rng, self.rnd = rng, rnd
        self.share = 0.0 if rnd.random() < 0.4 else 0.3
        self.hostile = False
        self.log: dict[str, Any] = {}

    def give(self, name: str, right: Callable[[], Any], wrong: Sequence[Any] | Callable[[], Any] = ANYTHING) -> Any:
        """Return an argument, and keep it."""
        if self.rnd.random() < self.share:
            self.hostile = True
            self.log[name] = wrong() if callable(wrong) else self.rnd.choice(wrong)
        else:
            self.log[name] = right()
        return self.log[name]

    def choose(self, *right: Any) -> Any:
        """Return one of these."""
        return self.rnd.choice(right)

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return float64 numbers of one of many scales, with ties, constants and values at the ends of float64."""
        normal = self.rng.normal(size=shape)
        kinds: list[Callable[[], Any]] = [
            lambda: normal * self.choose(1.0, 1.0, 1e-3, 1e6),
            partial(np.round, normal),
            lambda: np.full(shape, normal.flat[0] if normal.size else 0.0),
            lambda: normal * self.choose(1e-310, 1e-200, 1e-160, 1e100, 2e149),
            lambda: self.rng.choice([0.0, 5e-324, 1e-320, 1.0], size=shape),
            lambda: self.rng.choice([0.0, 1.0, -1e149, 1e149, 1e-149], size=shape),
            lambda: 1e6 + normal * 1e-7,
        ]
        found: np.ndarray = kinds[max(0, self.rnd.randrange(-9, len(kinds)))]()
        return found

    def labels(self, n: int, d: int = 0) -> Any:
        """Return `(n,)` or `(n, d)` labels that are right, of any kind and dtype."""
        values = self.values((n, d) if d else (n,))
        small = np.clip(np.nan_to_num(values), -100, 100)
        dtypes = ("f4", "f2", "i1", "i8", "u1", "?", ">f8", np.longdouble)
        forms: list[Callable[[], Any]] = [
            lambda: values,
            partial(torch.from_numpy, values),
            lambda: torch.from_numpy(small).to(self.choose(torch.float32, torch.float16, torch.bfloat16, torch.int64)),
            lambda: np.abs(small).astype(self.choose(*dtypes)),
            values.tolist,
            lambda: tuple(small.round().astype(int).tolist()),
            lambda: np.repeat(values, 2, axis=0)[::2],
            lambda: values[::-1],
            torch.from_numpy(np.repeat(values, 3, axis=0))[::3].requires_grad_,
            partial(np.asfortranarray, values),
            lambda: torch.from_numpy(np.abs(small)).float().to(self.choose(torch.bool, torch.uint8, torch.int32)),
        ]
        return forms[max(0, self.rnd.randrange(-3, len(forms)))]()

    def bad_labels(self, n: int, d: int = 0) -> Any:
        """Return labels that are wrong, or that may be."""
        values = self.values((n, d) if d else (n,))
        spoilt = values.copy()
        if spoilt.size:
            spoilt.flat[self.rnd.randrange(spoilt.size)] = self.choose(np.nan, np.inf, -np.inf, 1e200, -1e308)
        forms: list[Callable[[], Any]] = [
            lambda: spoilt,
            partial(torch.from_numpy, spoilt),
            spoilt.tolist,
            lambda: values[:0],
            lambda: values[None],
            lambda: values[: max(0, n - 1)],
            lambda: values.astype(complex),
            lambda: np.ma.masked_less(values, 0),
            lambda: torch.from_numpy(values).to_sparse(),
            lambda: torch.from_numpy(values).to("meta"),
            lambda: self.choose(values.astype(str), values.astype(object), [values, None], {"y": values}),
            lambda: self.rnd.choice(ANYTHING),
        ]
        return self.rnd.choice(forms)()


def plain(labels: Any) -> np.ndarray:
    """Return labels as float64 `(n, d)`."""
    given = labels.detach().double().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    return given.astype(np.float64).reshape(len(given), int(np.prod(given.shape[1:])))
