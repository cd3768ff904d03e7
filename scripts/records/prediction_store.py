"""Predictions as a store keeps them: whole steps, labels once a dataset, and a checksum over all of it.

<results>/predictions/targets/<dataset>.xz                  labels and domains of rows, by their SHA-256
<results>/predictions/<experiment>/<dataset>.xz             predictions, by cell, seed and split

A file is one xz stream with a SHA-256 of its content, which is a line of JSON and numbers behind it. The line names the
version (`FORMAT`), the rows, and the order of the numbers. Predictions are whole steps (`step_sizes`), kept
as their distance from the label, from the mean of the file's earlier predictions of the same rows, or from the mean of
the nearest of these, whichever is smallest; what equals earlier ones is kept as their place. A number is unsigned, its
sign the lowest bit, and all lowest bytes come first, then all second bytes. A float32 is kept whole where steps would
lose it: infinite, not a number, or too far away, too much alike, or beside predicted standard deviations, whose scores
are no means of errors. The same predictions give the same bytes, and packing again what was read changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.training.losses import mean_names
from datasets.common.damaged import naming
from scripts.stats.scored import Parts, Scored, smallest_type

FORMAT = "cmixup predictions 2"
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0}]
#: Kinds: from the label, from the mean of all earlier ones, a float32 kept whole; `SAME + k` is the k-th of the rows
#: again, and a list of places the distance from the mean of the earlier ones there.
LABEL, MEAN, WHOLE, SAME = 0, 1, 2, 3
NEAREST = (1, 2, 3, 5, 8, 16)  # how many of the nearest earlier ones a mean is taken of
Kind = int | list[int]
Cells = dict[str, dict[int, dict[str, Scored]]]  # by name of the cell, seed and split
SPREAD = 16  # steps that the standard deviation of predictions must have
MANTISSA = 2**24  # steps that a float32 can count


def step_sizes(target: np.ndarray) -> np.ndarray:
    """Return the size of the steps that predictions of some rows are kept in, `(d_y,)`, powers of two.

    It is at most 1/500 of the labels' standard deviation, and less where rows are few: rounding changes a mean over n
    rows by some n^-1/2 of a step, so that scores of all sizes of data keep as many digits. It is 0, and nothing is
    rounded, where the labels do not vary, or are too many steps.
    """
    std = target.astype(np.float64).std(axis=0) if len(target) else np.zeros(target.shape[1])
    if not ((std > 1e-30).all() and (std < 1e30).all()):
        return np.zeros(target.shape[1])
    sizes: np.ndarray = 2.0 ** np.floor(np.log2(min(2.55e-5 * len(target) ** 0.5, 2e-3) * std))
    return sizes if (np.abs(target) <= MANTISSA * sizes).all() else np.zeros(target.shape[1])


def in_steps(values: np.ndarray, sizes: np.ndarray) -> np.ndarray | None:
    """Return predictions `(n, d_y)` as whole numbers of steps, float64, None where steps would say them badly.

    Steps do so where a prediction is not finite or too far for them, and where all are so much alike that a step is
    more than `1 / SPREAD` of their standard deviation: a correlation would be that of the rounding.
    """
    if not (sizes.all() and np.isfinite(values).all()):
        return None
    whole: np.ndarray = np.rint(values.astype(np.float64) / sizes)
    fits = (whole.std(axis=0) >= SPREAD).all() and np.abs(whole).max(initial=0) <= MANTISSA
    return whole if fits else None


class Rows(NamedTuple):
    """What is known of some rows: `target` `(n, d_y)` float32, `domain` `(n,)` integers, and the size of a step."""

    target: np.ndarray
    domain: np.ndarray
    steps: np.ndarray


def targets_file(path: Path) -> Path:
    """Return where the labels are of a file of predictions, `<results>/predictions/<experiment>/<dataset>.xz`."""
    return path.parents[1] / "targets" / path.name


def rows_key(one: Scored) -> str:
    """Return what names some rows: the start of the SHA-256 of their labels and domains."""
    target, domain = np.ascontiguousarray(one.target, "<f4"), one.domain.astype("<i8")
    return hashlib.sha256(repr(target.shape).encode() + target.tobytes() + domain.tobytes()).hexdigest()[:20]


def write_cells(path: Path, cells: Mapping[str, Mapping[int, Parts]]) -> None:
    """Write the predictions of some cells, whole or not at all, and those of their labels that are not there yet."""
    runs = [(name, seed, part, one) for name, seeds in sorted(cells.items()) for seed, parts in sorted(seeds.items())
            for part, one in parts.items()]  # fmt: skip
    keys = [rows_key(one) for *_, one in runs]
    known = _keep_rows(targets_file(path), dict(zip(keys, (one for *_, one in runs), strict=True)))
    order, steps, whole, listed = sorted(set(keys)), list[np.ndarray](), list[np.ndarray](), list[Any]()
    earlier = {key: Earlier(known[key]) for key in order}
    for key, (name, seed, part, one) in zip(keys, runs, strict=True):
        kinds = []
        normal = len(mean_names(one.prediction)) < len(one.prediction)
        for values in one.prediction.values():
            kind, numbers = earlier[key].encode(values, whole=normal)
            kinds.append(kind)
            (whole if kind == WHOLE else steps).append(numbers)
        listed.append([name, seed, part, order.index(key), list(one.prediction), kinds])
    _write_numbers(path, {"format": FORMAT, "rows": order, "runs": listed}, steps, whole)


def read_cells(path: Path) -> Cells:
    """Return the predictions of cells by name, seed and split; nothing if there is no file."""
    cells = Cells()
    if not path.is_file():
        return cells
    with naming(path, "a file of predictions"):
        head, content = _read_whole(path)
        known = _read_targets(targets_file(path))
        if missing := [key for key in head["rows"] if key not in known]:
            raise InputError(f"{path} needs labels that {targets_file(path)} does not have: {missing[0]}")
        every = [Earlier(known[key]) for key in head["rows"]]
        sizes = [(kind, every[place].rows.target.size) for *_, place, _, kinds in head["runs"] for kind in kinds]
        steps, whole = _read_numbers(
            content, [n for kind, n in sizes if _has_steps(kind)], [n for kind, n in sizes if kind == WHOLE]
        )
        for name, seed, part, place, predictors, kinds in head["runs"]:
            rows = every[place].rows
            prediction = {
                predictor: every[place].decode(kind, whole if kind == WHOLE else steps)
                for predictor, kind in zip(predictors, kinds, strict=True)
            }
            cells.setdefault(name, {}).setdefault(seed, {})[part] = Scored(prediction, rows.target, rows.domain)
    return cells


class Earlier:
    """The predictions of `rows` that a file has, in its order, from which the distance of later ones is kept."""

    def __init__(self, rows: Rows):
        self.rows = rows
        self._known: list[np.ndarray] = []
        if rows.steps.all():
            self._label = np.rint(rows.target.astype(np.float64) / rows.steps)
            self._sum = np.zeros_like(self._label)

    def encode(self, values: np.ndarray, *, whole: bool = False) -> tuple[Kind, np.ndarray]:
        """Return how predictions are kept, and by which unsigned numbers; `whole` keeps them whole."""
        steps = None if whole else in_steps(values, self.rows.steps)
        if steps is None:
            return WHOLE, np.ascontiguousarray(values, "<f4").ravel().view("<u4")
        for k, known in enumerate(self._known):
            if np.array_equal(known, steps):
                return SAME + k, np.zeros(0, "<u4")
        tried = [(kind, steps - self._base(kind)) for kind in self._kinds(steps)]
        kind, away = min(tried, key=lambda one: np.log1p(np.abs(one[1])).sum())  # about the bits that they take
        self._add(steps)
        signed = away.T.ravel().astype(np.int64)
        return kind, ((signed << 1) ^ (signed >> 63)).astype("<u4")

    def decode(self, kind: Kind, numbers: Iterator[np.ndarray]) -> np.ndarray:
        """Return the predictions that `encode` was given, by the next of the numbers of their kind."""
        n, width = self.rows.target.shape
        if kind == WHOLE:
            return next(numbers).view("<f4").reshape(n, width)
        if _has_steps(kind):
            unsigned = next(numbers).astype(np.int64).reshape(width, n).T
            steps = ((unsigned >> 1) ^ -(unsigned & 1)) + self._base(kind)
            self._add(steps)
        else:
            assert isinstance(kind, int)
            steps = self._known[kind - SAME]
        return np.ascontiguousarray((steps * self.rows.steps).astype(np.float32))

    def _kinds(self, steps: np.ndarray) -> list[Kind]:
        """Return the ways to keep steps that may be the shortest."""
        if not self._known:
            return [LABEL]
        near = np.argsort([np.abs(steps - known).sum() for known in self._known], kind="stable").tolist()
        return [LABEL, MEAN, *(near[:n] for n in NEAREST if n < len(near))]

    def _base(self, kind: Kind) -> np.ndarray:
        if isinstance(kind, list):
            return np.rint(sum(self._known[place] for place in kind) / len(kind))
        return self._label if kind == LABEL else np.rint(self._sum / len(self._known))

    def _add(self, steps: np.ndarray) -> None:
        self._known.append(steps)
        self._sum = self._sum + steps


def _has_steps(kind: Kind) -> bool:
    return isinstance(kind, list) or kind < WHOLE


def _keep_rows(path: Path, given: Mapping[str, Scored]) -> dict[str, Rows]:
    """Return what is known of rows by their keys; those that are new are written beside the others."""
    known = _read_targets(path)
    new = {key: Rows(one.target, one.domain, step_sizes(one.target)) for key, one in given.items() if key not in known}
    every = dict(sorted({**known, **new}.items()))
    if new:
        about = {
            key: [*one.target.shape, np.log2(one.steps).astype(int).tolist() if one.steps.all() else []]
            for key, one in every.items()
        }
        numbers = [one.target.astype("<f4").T.ravel().view("<u4") for one in every.values()]
        domains = [one.domain.astype("<i4").view("<u4") for one in every.values()]
        _write_numbers(path, {"format": FORMAT, "targets": about}, numbers, domains)
    return every


def _read_targets(path: Path) -> dict[str, Rows]:
    if not path.is_file():
        return {}
    with naming(path, "a file of labels"):
        head, content = _read_whole(path)
        shapes = {key: (n, width) for key, (n, width, _) in head["targets"].items()}
        numbers, domains = _read_numbers(content, [n * width for n, width in shapes.values()],
                                         [n for n, _ in shapes.values()])  # fmt: skip
        return {
            key: Rows(
                np.ascontiguousarray(next(numbers).view("<f4").reshape(width, n).T),
                smallest_type(next(domains).view("<i4")),
                2.0 ** np.array(exponents, dtype=np.float64) if exponents else np.zeros(width),
            )
            for key, (n, width, exponents) in head["targets"].items()
        }


def _write_numbers(path: Path, head: Mapping[str, Any], *numbers: Sequence[np.ndarray]) -> None:
    """Write a line of JSON and groups of unsigned numbers: how many bytes each needs, all lowest bytes, and so on."""
    content = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    for group in numbers:
        values = np.concatenate([np.zeros(0, "<u4"), *group])
        width = max(1, -(-int(values.max(initial=0)).bit_length() // 8))
        content += bytes([width]) + values.view(np.uint8).reshape(-1, 4)[:, :width].T.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lzma.compress(content, lzma.FORMAT_XZ, lzma.CHECK_SHA256, filters=FILTERS))


def _read_whole(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the first line and the rest of a file's content, which its checksum says is whole."""
    packed = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    content = packed.decompress(path.read_bytes())
    if not packed.eof or packed.unused_data:
        raise ValueError("it was cut, or more was written behind it")
    line, _, rest = content.partition(b"\n")
    head = json.loads(line)
    if head["format"] != FORMAT:
        raise ValueError(f"its format is {head['format']!r}, and this version reads {FORMAT!r}")
    return head, rest


def _read_numbers(content: bytes, *sizes: Sequence[int]) -> Iterator[Iterator[np.ndarray]]:
    """Yield the numbers of each group that `_write_numbers` has written, one array of each of its sizes."""
    start = 0
    for group in sizes:
        n, width = sum(group), content[start]
        stop = start + 1 + n * width
        planes = np.zeros((n, 4), np.uint8)
        planes[:, :width] = np.frombuffer(content[start + 1 : stop], np.uint8).reshape(width, n).T
        yield iter(np.split(planes.view("<u4").ravel(), np.cumsum(group)))
        start = stop
