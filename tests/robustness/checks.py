"""What results are held to."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmixup.errors import shown


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


def check_draws(drawn: Any, rows: np.ndarray | None, n: int, count: int) -> None:
    """Raise `Wrong` unless partners `(B,)` are possible ones of `rows` `(B, n)`, and of `n` rows at all."""
    partners = np.asarray(drawn)
    check(partners.shape == (count,) and partners.dtype == np.int64, f"partners {partners.dtype} {partners.shape}")
    check(((partners >= 0) & (partners < n)).all(), f"partners {partners} of {n} rows")
    if rows is not None:
        check((rows[np.arange(count), partners] > 0).all(), f"partners {partners} of probability 0")
