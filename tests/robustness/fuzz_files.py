"""Damaged files under every reader: one line of `InputError` that names the file, or arrays that are well formed."""

import functools
import hashlib
import shutil
import warnings
from functools import partial
from pathlib import Path

import torch

from cmixup.errors import InputError
from datasets.common.fetch import FetchError, RawFile, fetch
from tests.robustness.attempts import judged, run_attempts, seeded
from tests.robustness.base import Trial
from tests.robustness.mutations import mutate
from tests.robustness.readers import READERS


@functools.cache
def sample(name: str) -> bytes:
    """Return what a right file of a reader holds."""
    return READERS[name].sample()


def refused_by_checksum(name: str, content: bytes, folder: Path) -> str:
    """Say what is wrong if a damaged file with a known checksum is not refused before anything reads it."""
    right = sample(name)
    file = RawFile(name, hashlib.sha256(right).hexdigest(), len(right), (), "", "")
    try:
        fetch(file, root=folder, mirror="")
    except FetchError:
        return "" if content != right else "a right file is refused"
    return "" if content == right else "a damaged file passes its checksum"


def attempt(number: int, seed: int, folder: Path) -> str:
    """Damage one file and read it; return what was wrong, or an empty text."""
    _, rnd = seeded(seed, number)
    reader = READERS[rnd.choice(sorted(READERS))]
    content = mutate(sample(reader.name), rnd) if rnd.random() < 0.98 else sample(reader.name)
    place = folder / "file"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    path = place / reader.name
    path.write_bytes(content)
    wrong = refused_by_checksum(reader.name, content, place)
    if reader.beside:
        reader.beside(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(path)
    except FetchError:
        pass  # a list of all sources
    except InputError as error:
        wrong = wrong or judged(error)
        if not wrong and not any(word in str(error) for word in (path.name, path.stem, str(path.parent))):
            wrong = f"a message that does not name the file: {error}"
        if content == sample(reader.name):
            wrong = f"a right file is refused: {error}"
    except Exception as error:
        wrong = judged(error)
    return f"file {number} of seed {seed}: {reader.name}: {wrong}" if wrong else ""


def run(count: int, seed: int, folder: Path) -> Trial:
    """Damage and read `count` files."""
    torch.set_num_threads(1)
    for name in READERS:  # made once, before children are
        sample(name)
    what = (
        "damaged files under every reader: refused by checksum where there is one, a line that names the file, or "
        "well-formed arrays"
    )
    tried = partial(attempt, seed=seed, folder=folder)
    return run_attempts("fuzz_files", what, tried, count, folder, notes=f"{len(READERS)} readers")
