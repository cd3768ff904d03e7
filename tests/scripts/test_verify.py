"""Published cells are trained again and compared within noise, on a tiny published set."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cmixup.errors import InputError
from scripts import verify as command
from scripts.config.compose import compose_train
from scripts.driver.execute import execute_together
from scripts.driver.job import plan_job
from scripts.driver.runs import RunFolder
from scripts.plan import rerun
from scripts.plan.rerun import draw_cells, published_cells
from scripts.records.experiment import RESULTS
from scripts.records.published import runs_file, write_reports
from tests.scripts.jobs import execute_job

CELL = "table1/airfoil/fcn3/cmixup/paper,dataset.synthetic=True,train.epochs=2"
ERM = CELL.replace("cmixup", "erm")
SEEDS = (3, 1, 2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cells of stacks of three seeds on synthetic data, published."""
    folder = tmp_path_factory.mktemp("published")
    words = ["dataset=airfoil", "debug=tiny", "preset=paper", "experiment.name=table1", "device=cpu", "seeds=[3,1,2]"]
    for method in ("erm", "cmixup"):
        for run in execute_job(plan_job(compose_train([*words, f"method={method}", f"out={folder / 'out'}"]))):
            write_reports(folder / "results", [RunFolder(run).report()])
    return folder / "results"


@pytest.fixture
def published(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "results"))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Train in this process, which starts at once; the jobs of each stack that was trained."""
    stacks: list[Any] = []

    def train(items: Any, title: str, workers: int, on_finish: Any) -> None:
        stacks[:] = {item.name: item.jobs for item in items}.values()
        for item in items:
            execute_together(item.jobs)
            sys.stdout.write(f"{on_finish(item, None)}\n")

    monkeypatch.setattr(rerun, "train_items", train)
    return stacks


def change(results: Path, method: str, factor: float, seeds: Any = SEEDS) -> None:
    """Change the published scores of some seeds of a method."""
    path = runs_file(results, "table1", "airfoil")
    runs = pd.read_csv(path)
    runs.loc[(runs["method"] == method) & runs["seed"].isin(seeds), "test_rmse"] *= factor
    runs.to_csv(path, index=False)


def verify(results: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """Run the command; return its status, what it printed, and what it called different."""
    status: Any = 0
    try:
        command.main(["cells", f"results={results}", *(options or ("count=99",)), "jobs=1"])
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    return status, printed.out, "".join(x for x in printed.err.splitlines(keepends=True) if x.startswith("DIFFERS"))


@pytest.mark.usefixtures("in_process")
def test_cells_agree_within_noise_and_those_that_do_not_are_named(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(published, "erm", 1.001, seeds=[3])  # a digit of one seed
    status, out, wrong = verify(published, capsys)
    assert (status, wrong) == (0, "")
    assert "2 of 2 cells agree within noise" in out
    assert re.search(f"{CELL}: 3 seeds, mean .*, the same digits", out)
    change(published, "erm", 1.3)
    path = runs_file(published, "table1", "airfoil").with_suffix(".json")
    about = json.loads(path.read_text())
    for shared in about["cells"].values():
        shared["options"] |= {"method.gone": 1} if shared["run"] == CELL else {}
    path.write_text(json.dumps(about))
    status, out, wrong = verify(published, capsys)
    assert status == 1
    assert "0 of 2 cells agree within noise" in out
    assert re.search(rf"DIFFERS {ERM}: 3 seeds, mean .*, -23\.\d\d ± 1\.\d\d %: further than 2 % and ", wrong)
    assert re.search(rf"DIFFERS {CELL}: .*gone", wrong)  # an option that is no longer known


@pytest.mark.usefixtures("in_process")
def test_two_seeds_decide_nothing(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs_file(published, "table1", "airfoil")
    pd.read_csv(path).query("method == 'cmixup' and seed != 2").to_csv(path, index=False)
    status, out, wrong = verify(published, capsys)
    assert (status, wrong) == (1, "DIFFERS nothing could be decided\n")
    assert re.search(f"{CELL}: 2 seeds, mean .*; not decided by fewer than 3 seeds", out)


def test_a_sample_is_drawn_from_the_seed(in_process: list[Any], published: Path, capsys: pytest.CaptureFixture[str]):
    pairs, _ = rerun.rerun_cells(2 * published_cells(published)[:1])  # two stacks of one name
    assert (len(in_process), [len(cell.pairs) for cell in pairs.values()]) == (2, [6])
    cells = published_cells(RESULTS)
    assert all(sorted(c.scores) == sorted(c.seeds) for c in cells)  # whole stacks
    assert [c.name for c in draw_cells(cells, 5, 1)] == [c.name for c in draw_cells(cells, 5, 1)]
    assert [c.name for c in draw_cells(cells, 5, 1)] != [c.name for c in draw_cells(cells, 5, 2)]
    assert draw_cells(cells, 10**6, 1) == cells
    status, out, _ = verify(published, capsys, "count=1", "seed=4")
    assert (status, len(in_process)) == (0, 1)
    assert "1 of 2 published cells, drawn with seed=4" in out


def test_cells_can_be_narrowed(published: Path) -> None:
    assert {c.name.split("/")[1] for c in published_cells(RESULTS, ["no2"])} == {"no2"}
    assert {c.name.split("/")[0] for c in published_cells(RESULTS, [], ["table3"])} == {"table3"}
    assert {c.first["model"] for c in published_cells(RESULTS, models=["lstnet"])} == {"lstnet"}
    with pytest.raises(InputError, match="holds no published run of fcn3"):
        published_cells(published, ["no2"])
