"""One bit of one file of a finished run flips: whoever reads the run gets what it held, or one line."""

import shutil
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from cmixup.done import DONE, checked
from cmixup.saved_run import load_run
from scripts.driver.predictions import PREDICTIONS, read_predictions
from scripts.driver.runs import CONFIG, HISTORY, read_report
from scripts.records.records import read_csv
from tests.robustness.attempts import judged, run_attempts, seeded
from tests.robustness.base import Trial
from tests.robustness.commands import Command, import_all, tail

WHAT = (
    "a run with one flipped bit in one of its files: every reader gives what the whole run gives, or one line that "
    "names the file"
)
TABLE = "size;age;price\n" + "".join(f"{k % 13};{k * k % 31};{k % 7 + 1}\n" for k in range(60))


def _predictions(run: Path) -> Any:
    (kept,) = read_predictions(run / PREDICTIONS).values()
    return [part.prediction[""].tobytes() for part in kept.values()]


def _new_rows(run: Path) -> Any:
    rows = pd.DataFrame({"size": [1, 2, 40], "age": [3.0, 9.5, 0.0]})
    return load_run(run).predict(rows).to_numpy().tobytes()


#: Whoever reads a run, by what it gives.
READERS: dict[str, Callable[[Path], Any]] = {
    "report": lambda run: repr(read_report(run)),
    "configuration": lambda run: yaml.safe_load(checked(run / CONFIG).read_text()),
    "history": lambda run: read_csv(checked(run / HISTORY)),
    "predictions": _predictions,
    "predictions of new rows": _new_rows,
}


def flipped(content: bytes, bit: int) -> bytes:
    """Return bytes with one bit the other way."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def attempt(number: int, seed: int, whole: Path, expected: Mapping[str, Any], folder: Path) -> str:
    """Flip one bit and read the run by everybody; return what was wrong, or an empty text."""
    _, rnd = seeded(seed, number)
    names = sorted(path.name for path in whole.iterdir())
    name = names[number % len(names)]
    run = folder / "flipped" / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(whole, run)
    content = (whole / name).read_bytes()
    bit = rnd.randrange(8 * len(content))
    (run / name).write_bytes(flipped(content, bit))
    for reader, read in READERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wrong = "" if read(run) == expected[reader] else "gives something else"
        except Exception as error:
            wrong = judged(error)
            if not wrong and not any(word in str(error) for word in (name, DONE, str(run))):
                wrong = f"a line that does not name the file: {error}"
        if wrong:
            return f"flip {number} of seed {seed}: bit {bit} of {name}: {reader}: {wrong}"
    return ""


def run(count: int, seed: int, folder: Path) -> Trial:
    """Flip `count` bits, in turns over the files of a run."""
    import_all()
    table, log = folder / "table.csv", folder / "log"
    folder.mkdir(parents=True, exist_ok=True)
    table.write_text(TABLE)
    given = (f"table={table}", "target=price", "method=cmixup", "train.epochs=2", "train.batch_size=12", "logger=none")
    if code := Command("scripts.train", (*given, f"out={folder / 'out'}")).run(log):
        raise RuntimeError(f"the undisturbed command ended with {code}: {tail(log)}")
    (done,) = (folder / "out" / "runs").rglob(DONE)
    files = sorted(path.name for path in done.parent.iterdir())
    expected = {reader: read(done.parent) for reader, read in READERS.items()}
    tried = partial(attempt, seed=seed, whole=done.parent, expected=expected, folder=folder)
    notes = f"{len(files)} files in turns ({', '.join(files)}), {len(READERS)} readers"
    return run_attempts("bit_rot", WHAT, tried, count, folder, notes=notes)
