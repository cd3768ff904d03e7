"""Damaged files and hostile words: what is asked for, or one line that names what is wrong."""

import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmixup.errors import InputError
from cmixup.sklearn import TabularRegressor
from datasets.common.video.avi import Avi
from datasets.csv import Csv
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from tests.datasets.samples import write_avi

QUICK = settings(max_examples=30, deadline=None, derandomize=True)


def save_table(path: Path) -> None:
    rows = (f"{k},5;{k * k};{'xyz'[k % 3]};{'' if k % 7 == 0 else k / 3:.3};{k * 7919 % 101 / 10}\n" for k in range(30))
    path.write_text('a;b;name;"a long; name";y\n' + "".join(rows))


def read_table(path: Path) -> None:
    data = Csv(str(path), target="y", categorical="name", separator=";", decimal="comma", encoding="latin1").load(0)
    assert all(np.isfinite(part.y).all() and len(part.x) == len(part.y) for part in (data.train, data.val, data.test))


def save_regressor(path: Path) -> None:
    rng = np.random.default_rng(0)
    model = TabularRegressor(hidden_layer_sizes=(4,), epochs=2, random_state=0)
    model.fit(rng.normal(size=(20, 3)), rng.normal(size=20)).save(path)


def read_regressor(path: Path) -> None:
    assert TabularRegressor.load(path).predict(np.zeros((2, 3))).shape == (2,)


def save_video(path: Path) -> None:
    write_avi(path, np.arange(3 * 8 * 8 * 3, dtype=np.uint8).reshape(3, 8, 8, 3))


def read_video(path: Path) -> None:
    video = Avi(path)
    assert video.read(range(min(len(video), 20))).dtype == np.uint8


#: Of each kind of file that has no checksum: its name, how a right one is written, and its reader.
FILES: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    "table.csv": (save_table, read_table),
    "model.npz": (save_regressor, read_regressor),
    "video.avi": (save_video, read_video),
}


def error_of(call: Callable[[], object]) -> str:
    """Return the one line with which a call refuses bad input, or nothing."""
    try:
        call()
    except InputError as error:
        (line,) = str(error).splitlines()
        return line
    return ""


@cache
def right_file(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        FILES[name][0](path)
        FILES[name][1](path)
        return path.read_bytes()


@pytest.mark.parametrize("name", FILES)
@QUICK
@given(data=st.data())
def test_a_damaged_file_is_read_or_named_in_one_line(name: str, data: st.DataObject) -> None:
    content = bytearray(right_file(name))
    start = data.draw(st.integers(0, len(content)))
    content[start : start + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=20))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / name
        path.write_bytes(content)
        message = error_of(lambda: FILES[name][1](path))
        assert not message or name in message or folder in message


KEYS = (
    "seed", "seeds", "preset", "device", "out", "train.epochs", "train.lr", "train.batch_size", "train.track",
    "method.bandwidth", "method.alpha", "method.layer", "dataset.max_rows", "model.layers", "method", "dataset",
)  # fmt: skip
VALUES = (
    "", "null", "true", "-1", "3.5", "1e400", "nan", ".inf", "0x10", "1" + "0" * 400, "[]", "{}", "[null]", "{a:1}",
    "{_target_:builtins.print}", "''", "a", "auto", "x" * 3000, "☃", "'\\0'", "../..", "$", "${", "${missing}",
    "${oc.env:NOPE}", "3..0", "..", "0,0", "range(0,3)", "cuda:99", "meta", "a=b", "(",
    "!!python/object:os.system", "a b",
)  # fmt: skip


@settings(QUICK, max_examples=12)
@given(st.sampled_from(KEYS), st.sampled_from(VALUES) | st.text(max_size=8))
def test_a_word_of_a_command_line_is_planned_or_refused_in_one_line(key: str, value: str) -> None:
    words = ["dataset=no2", "dataset.synthetic=true", "logger=none", f"{key}={value}"]
    assert len(error_of(lambda: plan_job(compose_train(words)))) <= 400
