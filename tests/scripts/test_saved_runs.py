"""What the files of a saved run may hold: a damaged one is named, and a foreign class is not imported."""

import io
import json
import math
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml

import cmixup
from cmixup import InputError, load_run
from cmixup.files import checked, done_text
from scripts.driver.job import Job
from scripts.driver.runs import RunFolder
from scripts.report.overfitting import read_curves
from tests.scripts.jobs import FILES


def damaged(folder: Path, tmp_path: Path, name: str, content: str | bytes | None) -> Path:
    """A copy of a run with another file in the place of one, which its `DONE` lists."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    if content is not None:
        (copy / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (copy / "DONE").write_text(done_text(path for path in copy.iterdir() if path.name != "DONE"))
    if content is None:
        (copy / name).unlink()
    return copy


def saved(weights: dict[str, torch.Tensor]) -> bytes:
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"), [("DONE", None, "it holds no DONE"),
    ("model.json", None, "an earlier version made it; train it again with rerun=true"),
    ("model.json", "{", "does not hold what a run keeps there"),
    ("model.json", "[" * 10**5 + "]" * 10**5, "does not hold what a run keeps there"),
    ("model.json", {"label_scaling": {"mean": [0.0, 1.0], "std": [1.0]}}, "label_scaling must be numbers of every"),
    ("model.json", {"label_scaling": {"mean": [math.inf], "std": [1.0]}}, "holds numbers that are not finite"),
    ("checkpoint.pt", None, "weights=false"), ("checkpoint.pt", b"no weights", "does not hold the weights"),
    ("checkpoint.pt", b"", "does not hold the weights"),
    ("checkpoint.pt", saved({"linear1.weight": torch.ones(2)}), "does not hold the weights"),
    ("checkpoint.pt", math.nan, "holds numbers that are not finite"),
    ("preprocessing.json", None, "has no preprocessing.json, which its DONE lists: copy the whole folder"),
    ("preprocessing.json", "{}", "does not hold what a run keeps there"),
    ("preprocessing.json", b"\xff", "does not hold what a run keeps there"),
    ("preprocessing.json", {"targets": ["one", "two"]}, "is of other data than model.json")],
)  # fmt: skip
def test_a_damaged_run_is_one_line(
    no2: tuple[Job, Path], tmp_path: Path, name: str, content: Any, message: str
) -> None:
    path = no2[1] / "seed=3" / name
    if isinstance(content, dict):
        content = json.dumps({**json.loads(path.read_text()), **content})
    if isinstance(content, float):
        weights = torch.load(path, weights_only=True)
        next(iter(weights.values())).view(-1)[0] = content
        content = saved(weights)
    with pytest.raises(InputError, match=message) as caught:
        load_run(damaged(path.parent, tmp_path, name, content))
    assert "\n" not in str(caught.value)


NEW = pd.DataFrame({"size": [1.25, 4.25], "age": [3, 30], "state": ["s1", "s8"]})
READERS: tuple[Callable[[Path], Any], ...] = (
    lambda folder: repr(RunFolder(folder).report()),
    lambda folder: yaml.safe_load(checked(folder / "config.yaml").read_text()),
    lambda folder: repr(read_curves([{**RunFolder(folder).report(), "run": folder.name}], folder.parent)),
    lambda folder: [part.prediction[""].tobytes() for part in RunFolder(folder).predictions().values()],
    lambda folder: load_run(folder).predict(NEW).to_numpy().tobytes(),
)


def answer_or_name(read: Callable[[Path], Any], folder: Path, name: str) -> Any:
    """Return what a reader gives, or the name if that is in the one line by which it refuses the run."""
    try:
        return read(folder)
    except InputError as error:
        (line,) = str(error).splitlines()
        return name if name in line or "DONE" in line else line


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_of_a_run_changes_no_answer(name: str, table_run: tuple[Job, Path], tmp_path: Path) -> None:
    """Its size is right, so the run counts as done; whoever reads the file names it, and others answer as before."""
    whole, rng = Path(shutil.copytree(table_run[0].run_folder(0), tmp_path / "whole" / "run")), random.Random(name)
    expected = [read(whole) for read in READERS]
    for flip in range(3):
        folder = Path(shutil.copytree(whole, tmp_path / f"{flip}" / "run"))
        changed = bytearray((folder / name).read_bytes())
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        (folder / name).write_bytes(changed)
        answers = [answer_or_name(read, folder, name) for read in READERS]
        assert all(answer in (before, name) for answer, before in zip(answers, expected, strict=True))
        assert name == "DONE" or (name in answers and RunFolder(folder).is_done())


def test_the_library_alone_predicts_with_runs_on_tables_and_names_another_datasets_in_the_way(
    no2: tuple[Job, Path], table_run: tuple[Job, Path], tmp_path: Path
) -> None:
    """Python is as `pip install cmixup datasets` leaves it: `datasets` is another one, and there is no `models`."""
    root = str(Path(cmixup.__file__).parents[1])
    expected = load_run(table_run[0].run_folder(0)).predict(NEW).to_numpy().tobytes()
    given = json.loads((no2[1] / "seed=3" / "model.json").read_text())
    given["model"]["_target_"] = "models.lstnet.LSTNet"
    needs_checkout = damaged(no2[1] / "seed=3", tmp_path / "run", "model.json", json.dumps(given))
    given["model"]["_target_"] = "datasets.nowhere.Net"
    collides = damaged(no2[1] / "seed=3", tmp_path / "other", "model.json", json.dumps(given))
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "__init__.py").write_text("")
    code = f"""
import sys
sys.path.append({root!r}); import cmixup; sys.path.remove({root!r})
import datasets, pandas
rows = pandas.DataFrame({NEW.to_dict("list")!r})
print(cmixup.load_run({str(table_run[0].run_folder(0))!r}).predict(rows).to_numpy().tobytes() == {expected!r})
for folder in ({str(needs_checkout)!r}, {str(collides)!r}):
    try: cmixup.load_run(folder)
    except cmixup.errors.InputError as error: print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    same, alone, beside = done.stdout.splitlines() or [done.stderr, "", ""]
    assert same == "True"
    assert "models.lstnet.LSTNet, which cannot be imported here (No module named 'models'): load the run" in alone
    assert f"; here datasets is {tmp_path / 'datasets' / '__init__.py'}, which must be that of the checkout" in beside


def test_what_is_no_model_is_never_called(no2: tuple[Job, Path], tmp_path: Path) -> None:
    given = json.loads((no2[1] / "seed=3" / "model.json").read_text())
    for target in ("os.mkdir", "subprocess.Popen", "pathlib.Path"):
        given["model"]["_target_"] = target
        copy = damaged(no2[1] / "seed=3", tmp_path / target, "model.json", json.dumps(given))
        with pytest.raises(InputError, match=f"names {target}, which is no class of this project: trust=True"):
            load_run(copy)
        with pytest.raises(InputError, match=f"must name a model, got '{target}'"):
            load_run(copy, trust=True)


def test_no_module_outside_this_project_is_imported_but_by_one_who_trusts_it(
    no2: tuple[Job, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'a').write('.')\nfrom cmixup.networks.fcn3 import FCN3 as Net\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    given = json.loads((no2[1] / "seed=3" / "model.json").read_text())
    given["model"]["_target_"] = "mine.Net"
    copy = damaged(no2[1] / "seed=3", tmp_path / "copy", "model.json", json.dumps(given))
    with pytest.raises(InputError, match=r"names mine\.Net, which is no class of this project: trust=True imports it"):
        load_run(copy)
    assert not (tmp_path / "ran").exists()
    rows = [[0.5] * 7]
    assert load_run(copy, trust=True).predict(rows).equals(load_run(no2[1] / "seed=3").predict(rows))
    with pytest.raises(InputError, match="trust must be True or False"):
        load_run(copy, trust=1)  # type: ignore[arg-type]
