"""Tables that other people made, damaged as files are: arrays that are well formed, or one line that names the file."""

from __future__ import annotations

import gzip
import random
import warnings
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from datasets.csv import Csv
from tests.robustness.attempts import judged, run_attempts, seeded
from tests.robustness.base import Trial
from tests.robustness.mutations import mutate

WHAT = (
    "real tables, mutated, as `dataset=csv` with a random target: finite splits, no more rows than the file has lines, "
    "a checksum, and the same again; or one line that names file or argument"
)
#: Folders of installed packages that hold tables, with the files.
PACKED = {
    "sklearn.datasets": ("iris.csv", "wine_data.csv", "breast_cancer.csv", "linnerud_exercise.csv",
                         "diabetes_data_raw.csv.gz", "digits.csv.gz"),
    "matplotlib": ("Stocks.csv", "msft.csv", "data_x_x2_x3.csv"),
}  # fmt: skip
INSIDE = {"sklearn.datasets": "data", "matplotlib": "mpl-data/sample_data"}
MOST = 60_000  # bytes of a table
SEPARATORS = (b";", b"\t", b"|")


@cache
def tables() -> dict[str, bytes]:
    """Return the tables by name."""
    found = {}
    for package, names in PACKED.items():
        for name in names:
            content = resources.files(package).joinpath(INSIDE[package], name).read_bytes()
            content = gzip.decompress(content) if name.endswith(".gz") else content
            found[name.removesuffix(".gz")] = content[:MOST].rpartition(b"\n")[0] + b"\n"
    return found


def rewritten(content: bytes, rnd: random.Random) -> bytes:
    """Return a table as another program would have saved it: separator, decimal comma, line ends, encoding, a mark."""
    if rnd.random() < 0.4:
        content = content.replace(b",", rnd.choice(SEPARATORS))
        content = content.replace(b".", b",") if rnd.random() < 0.4 else content
    if rnd.random() < 0.2:
        content = content.replace(b"\n", rnd.choice((b"\r\n", b"\r", b"\n\n")))
    if rnd.random() < 0.2:
        content = b"\xef\xbb\xbf" + content
    return content


def attempt(number: int, seed: int, folder: Path) -> str:
    """Mutate one table and load it twice; return what was wrong, or an empty text."""
    _, rnd = seeded(seed, number)
    name = rnd.choice(sorted(tables()))
    content = rewritten(tables()[name], rnd)
    content = mutate(content, rnd) if rnd.random() < 0.8 else content
    path = folder / "t.csv"
    path.write_bytes(content)
    head = content.partition(b"\n")[0].decode(errors="replace").strip("\r\ufeff")
    separator = max((",", ";", "\t", "|"), key=head.count)
    target = rnd.choice(head.split(separator)).strip(' "')
    wrong, options = "", {"log_target": rnd.random() < 0.1, "scaling": rnd.choice(("standard", "minmax", "none"))}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            wrong = unlike(path, target, options)
    except Exception as error:
        wrong = judged(error)
        if not wrong and not any(word in str(error) for word in (path.name, "target", "path", "separator", "column")):
            wrong = f"a line that names no file and no argument: {error}"
    return f"table {number} of seed {seed}: {name}, target {target!r}: {wrong}" if wrong else ""


def unlike(path: Path, target: str, options: Mapping[str, Any]) -> str:
    """Load a table twice, and say what is not well formed."""
    one, two = (Csv(str(path), target=target, **options).load(3) for _ in range(2))
    parts = {part: getattr(one, part) for part in ("train", "val", "test")}
    for part, split in parts.items():
        x, y = torch.as_tensor(split.x), torch.as_tensor(split.y)
        if not (len(x) == len(y) > 0 and x.ndim == y.ndim == 2):
            return f"{part} has shapes {tuple(x.shape)} and {tuple(y.shape)}"
        if not (bool(x.isfinite().all()) and bool(y.isfinite().all())):
            return f"{part} is not finite"
        again = getattr(two, part)
        if not (torch.equal(x, torch.as_tensor(again.x)) and torch.equal(y, torch.as_tensor(again.y))):
            return f"{part} is another one the second time"
    rows, lines = sum(len(split.y) for split in parts.values()), path.read_bytes().count(b"\n")
    if b"\r" not in path.read_bytes() and rows > lines:
        return f"{rows} rows of {lines} lines"
    return "" if one.checksums == two.checksums and one.checksums else "it has no checksum"


def run(count: int, seed: int, folder: Path) -> Trial:
    """Mutate and load `count` tables."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    tried = partial(attempt, seed=seed, folder=folder)
    notes = f"{len(tables())} tables of scikit-learn and matplotlib: {', '.join(sorted(tables()))}"
    return run_attempts("foreign_tables", WHAT, tried, count, folder, notes=notes)
