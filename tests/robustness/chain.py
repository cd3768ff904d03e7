"""One bit flips in the published results: the seal names the file, and no reader of records ends in a traceback."""

import bisect
import itertools
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from cmixup.errors import InputError
from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports
from scripts.records.seal import SEAL, broken_files, seal_files, sealed_files
from tests.robustness.attempts import judged, run_attempts, seeded
from tests.robustness.base import Trial
from tests.robustness.bit_rot import flipped

WHAT = (
    "one flipped bit in any file of the published results (half of the bits by size, half by file): the seal names the "
    "file, and whoever reads flipped records gets them or one line that names the file"
)


def attempt(number: int, seed: int, sizes: Mapping[str, int], folder: Path) -> str:
    """Flip one bit and look at the seal; return what was wrong, or an empty text.

    Args:
        number, seed: of the flip.
        sizes: bytes by name, of the files that may be hit.
        folder: where a copy of results/ stands, which is all links but for the file that is hit.
    """
    _, rnd = seeded(seed, number)
    names = list(sizes)
    ends = list(itertools.accumulate(sizes.values()))
    name = names[bisect.bisect_right(ends, rnd.randrange(ends[-1]))] if number % 2 else rnd.choice(names)
    path, bit = folder / name, rnd.randrange(8 * sizes[name])
    whole, link = path.read_bytes(), path.readlink() if path.is_symlink() else None
    path.unlink()
    path.write_bytes(flipped(whole, bit))
    about = f"flip {number} of seed {seed}: bit {bit} of {name}"
    try:
        lines = broken_files(folder, set(sizes) - {name})
        wrong = "" if any(name in line for line in lines) else "the seal does not name it"
    except InputError as error:
        wrong = judged(error) or ("" if SEAL in str(error) else f"a line that names no file: {error}")
    finally:
        if name.startswith("runs/"):
            alone = folder.parent / "alone"
            (alone / name).parent.mkdir(parents=True)
            path.replace(alone / name)
        path.unlink(missing_ok=True)
        if link:
            path.symlink_to(link)
        else:
            path.write_bytes(whole)
    if not wrong and name.startswith("runs/"):
        try:
            list(published_reports(alone))
        except Exception as error:
            wrong = judged(error) or ("" if Path(name).name in str(error) else f"a line that names no file: {error}")
    shutil.rmtree(folder.parent / "alone", ignore_errors=True)
    return f"{about}: {wrong}" if wrong else ""


def run(count: int, seed: int, folder: Path) -> Trial:
    """Flip `count` bits of results/, as they are here, with a seal of their own."""
    copy = folder / "results"
    for name, path in sealed_files(RESULTS).items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).symlink_to(path.resolve())
    seal_files(copy, first=True)
    files = {**sealed_files(copy), SEAL: copy / SEAL}
    sizes = {name: path.stat().st_size for name, path in files.items() if path.stat().st_size}
    notes = f"{len(files) - 1} files and the seal itself, {sum(sizes.values()) / 1e6:.0f} MB"
    flip = partial(attempt, seed=seed, sizes=sizes, folder=copy)
    return run_attempts("chain", WHAT, flip, count, folder, notes=notes)
