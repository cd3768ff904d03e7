"""Alias tables (Walker 1977), built for many short rows at once."""

from __future__ import annotations

import numpy as np

from cmixup.sampling.inputs import Floats, Ints


def alias_rows(mass: Floats, row_start: Ints) -> tuple[Floats, Ints]:
    """Build one alias table for each row by the sweeping construction, all rows in step.

    Each step closes one slot of every open row: the current light slot is topped up by the current heavy
    one, or the heavy one, used up, becomes a light slot itself (Hubschle-Schneider & Sanders, "Parallel
    Weighted Random Sampling", 2022).

    Args:
        mass: (S,) unnormalised masses, 0 or more, with a positive sum in every row.
        row_start: (R + 1,) first slot of each row, and S.

    Returns:
        (S,) float64 probability of staying in a slot, and (S,) int64 slot of the same row to move to otherwise.
    """
    width = np.diff(row_start)
    row = np.repeat(np.arange(len(width)), width)
    mass = mass * (width / np.add.reduceat(mass, row_start[:-1]))[row]
    heavy = mass >= 1
    queue = np.argsort(2 * row + heavy, kind="stable")  # in each row: light slots, then heavy ones
    light = row_start[:-1].copy()
    n_heavy = np.add.reduceat(heavy.astype(np.int64), row_start[:-1])
    lights_end, heavies_end = row_start[1:] - n_heavy, row_start[1:]
    heavy_at = lights_end.copy()

    stay = np.ones(len(mass))
    move = np.arange(len(mass))
    open_rows = np.flatnonzero((n_heavy > 0) & (n_heavy < width))
    rest = np.zeros(len(width))
    rest[open_rows] = mass[queue[heavy_at[open_rows]]]
    while open_rows.size:
        giving = rest[open_rows] >= 1
        r = open_rows[giving]
        slot = queue[light[r]]
        stay[slot] = mass[slot]
        move[slot] = queue[heavy_at[r]]
        rest[r] -= 1 - mass[slot]
        light[r] += 1
        r = open_rows[~giving]
        slot = queue[heavy_at[r]]
        heavy_at[r] += 1
        following = heavy_at[r] < heavies_end[r]  # without a next heavy slot only rounding is left: stay = 1
        r, slot = r[following], slot[following]
        stay[slot] = rest[r]
        move[slot] = queue[heavy_at[r]]
        rest[r] += mass[move[slot]] - 1
        # With no light slot left, a heavy one that gave too much still has to be topped up by the next.
        unfinished = (light < lights_end) | (rest < 1)
        open_rows = open_rows[(unfinished & (heavy_at < heavies_end))[open_rows]]
    return stay, move
