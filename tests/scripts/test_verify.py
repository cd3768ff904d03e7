"""Published cells are trained again and compared, to the last bit or within noise, on a tiny published set."""

import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.driver.execute import execute_job, execute_together
from scripts.driver.job import plan_job
from scripts.driver.runs import read_report
from scripts.machine.kernels import VARIABLE, kernels_of
from scripts.plan import trained_again
from scripts.plan.schedule import items_of
from scripts.plan.trained_again import Paired, beyond_noise, training_commands
from scripts.plan.verification import (
    Difference,
    config_differences,
    draw_cells,
    own_score,
    published_cells,
    report_differences,
)
from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports, write_reports
from scripts.verify import main

CELL = "table1/airfoil/fcn3/cmixup/paper,dataset.synthetic=True,train.epochs=2"
ERM = CELL.replace("cmixup", "erm")
SEEDS = (3, 1, 2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cells of stacks of three seeds on the twin, published."""
    folder = tmp_path_factory.mktemp("published")
    words = ["dataset=airfoil", "debug=tiny", "preset=paper", "experiment.name=table1", "device=cpu", "seeds=[3,1,2]"]
    for method in ("erm", "cmixup"):
        for run in execute_job(plan_job(compose_train([*words, f"method={method}", f"out={folder / 'out'}"]))):
            write_reports(folder / "results", [read_report(run)])
    return folder / "results"


@pytest.fixture
def published(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "results"))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in this process, which starts at once."""

    def train(items: Any, title: str, workers: int, on_finish: Any) -> None:
        for item in items:
            execute_together(item.jobs)
            assert item.jobs[0].config["method"]["name"] in on_finish(item, None)

    monkeypatch.setattr(trained_again, "train_items", train)


def change(results: Path, method: str, seed: int, edit: Any) -> None:
    (report,) = [r for r in published_reports(results) if (r["method"], r["seed"]) == (method, seed)]
    edit(report)
    write_reports(results, [report])


def verify(results: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """Run the command; return its status, what it printed, and what it called different."""
    status: Any = 0
    try:
        main(["cells", f"results={results}", *(options or ("all=1",)), "jobs=1"])
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    return status, printed.out, "".join(x for x in printed.err.splitlines(keepends=True) if x.startswith("DIFFERS"))


@pytest.mark.slow
def test_cells_that_repeat_and_a_score_that_is_off_by_one_ulp(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, wrong = verify(published, capsys)
    assert (status, wrong) == (0, "")
    assert "2 of 2 cells repeat to the last bit" in out

    def one_ulp(report: dict) -> None:
        report["scores"]["val"]["r"] = float(np.nextafter(report["scores"]["val"]["r"], math.inf))

    change(published, "cmixup", 3, one_ulp)
    status, out, wrong = verify(published, capsys)
    assert status == 1
    assert "1 of 2 cells repeat to the last bit" in out
    (line,) = wrong.splitlines()
    assert line.startswith(f"DIFFERS {CELL}")
    assert "1 of " in line
    assert "seed 3 val r " in line
    assert "relative" in line


@pytest.mark.usefixtures("in_process")
def test_cells_of_kernels_that_cannot_be_had_are_compared_within_noise_and_the_others_to_the_last_bit(
    published: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    monkeypatch.setattr(trained_again, "word_for", {"there": "intel", "nowhere": None}.get)
    monkeypatch.setattr(
        trained_again, "items_of", lambda work: asked.append(os.environ.get(VARIABLE, "")) or items_of(work)
    )
    for seed in SEEDS:
        change(published, "erm", seed, lambda report: report.update(kernels="nowhere"))
        change(published, "cmixup", seed, lambda report: report.update(kernels="there"))
    status, out, wrong = verify(published, capsys)
    assert (status, wrong, asked) == (0, "", ["intel", ""])
    assert "1 of 1 cells repeat to the last bit" in out
    assert "other kernels: compared within noise: 1 cells, made with nowhere; the kernels here are " in out
    assert "1 of 1 cells agree within noise" in out
    assert not os.environ.get(VARIABLE)

    def scaled(factor: float) -> Any:
        return lambda report: report["scores"]["test"].update(rmse=factor * report["scores"]["test"]["rmse"])

    change(published, "erm", 3, scaled(1.001))  # a digit of one seed
    assert verify(published, capsys)[0] == 0
    for seed in SEEDS:
        change(published, "erm", seed, scaled(1.3))
    status, out, wrong = verify(published, capsys)
    assert status == 1
    assert "0 of 1 cells agree within noise" in out
    assert re.fullmatch(rf"DIFFERS {ERM}: 3 seeds, mean .*, -23\.\d\d ± 1\.\d\d %: further than 2 % and .*\n", wrong)
    change(published, "cmixup", 3, scaled(1.001))
    assert f"DIFFERS {CELL}: 1 of " in verify(published, capsys)[2]  # it had its own kernels


@pytest.mark.usefixtures("in_process")
def test_other_kernels_excuse_no_changed_preset_and_no_lost_seed_and_decide_nothing_by_two_seeds(
    published: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trained_again, "word_for", lambda _: None)
    for path in (published / "runs").rglob("erm.jsonl"):
        path.unlink()
    change(published, "cmixup", 1, lambda report: report["config"]["train"].update(lr=0.5))
    status, _, wrong = verify(published, capsys)
    assert status == 1
    assert f"DIFFERS {CELL}: preset paper has changed: train.lr 0.5 -> 0.01" in wrong
    change(published, "cmixup", 1, lambda report: report["config"]["train"].update(lr=0.01))
    (path,) = (published / "runs").rglob("cmixup.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    status, out, wrong = verify(published, capsys)
    assert (status, wrong) == (1, "DIFFERS nothing could be decided\n")
    assert re.search(f"not decided: {CELL}: 2 seeds, mean .*; not decided by fewer than 3 seeds", out)
    assert "0 of 0 cells agree within noise" in out


def test_another_rate_and_a_bandwidth_of_none_are_beyond_noise() -> None:
    """Published cells of the ladder stand for those that were trained wrongly: of the rate of 0.01 for 0.003, and ERM.

    ERM is C-Mixup where nobody is mixed with another row. On NO2, Crime and SkillCraft it would not be told from it:
    both have about the same error there.
    """
    ladder = {}
    for cell in published_cells(RESULTS, ["airfoil"], ["ladder"]):
        train = cell.first["config"]["train"]
        ladder[cell.first["method"], train["lr"], train["epochs"], train.get("label_scaling")] = cell
    rates = [(c, ladder[m, 0.01, *rest]) for (m, lr, *rest), c in ladder.items() if lr == 0.003]
    widths = [(c, ladder["erm", *rest]) for (m, *rest), c in ladder.items() if m == "cmixup"]
    rng = np.random.default_rng(0)
    drawn = [each[k] for each in (rates, widths) for k in rng.choice(len(each), 6, replace=False)]
    found = {}
    for k, (right, wrong) in enumerate(drawn):
        pairs = [(own_score(report), own_score(wrong.reports[seed])) for seed, report in right.reports.items()]
        assert len(pairs) >= 5
        found[str(k)] = Paired(pairs)
    assert len(beyond_noise(found)) >= 9, list(map(str, found.values()))


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda r: r.update(best_epoch=r["best_epoch"] + 1), "seed 1 best_epoch"),
        (lambda r: r["facts"].update(effective_fraction=0.5), "seed 1 fact effective_fraction 0.5"),
        (lambda r: r["scores"]["test"].update(older=1.0), "seed 1 test older 1.0 -> None"),
        (lambda r: r["config"]["train"].update(lr=0.5), "preset paper has changed: train.lr 0.5 -> 0.01"),
        (lambda r: r["options"].update({"method.gone": 1}), "gone"),
    ],
)
@pytest.mark.usefixtures("in_process")
def test_everything_else_that_can_differ_is_named(
    edit: Any, named: str, published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (published / "runs").rglob("erm.jsonl"):
        path.unlink()
    change(published, "cmixup", 1, edit)
    status, _, wrong = verify(published, capsys)
    assert status == 1
    assert named in wrong


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_sample_is_drawn_from_the_seed(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = published_cells(RESULTS)
    assert [c.name for c in draw_cells(cells, 5, 1)] == [c.name for c in draw_cells(cells, 5, 1)]
    assert [c.name for c in draw_cells(cells, 5, 1)] != [c.name for c in draw_cells(cells, 5, 2)]
    assert len({c.name for c in draw_cells(cells, 5, 1)}) == 5
    assert draw_cells(cells, 10**6, 1) == cells
    status, out, _ = verify(published, capsys, "count=1", "seed=4")
    assert status == 0
    assert "1 of 2 published cells, drawn with seed=4" in out
    assert "1 of 1 cells repeat" in out


def test_every_published_cell_is_a_whole_stack_whose_command_composes() -> None:
    cells = published_cells(RESULTS)
    assert {len(c.seeds) for c in cells} <= {1, 3, 10, 20}  # RC-Mixup trains every seed alone
    assert all(sorted(c.reports) == sorted(c.seeds) for c in cells)
    assert all(kernels_of(c.first) for c in cells)
    assert {c.name.partition("/")[0] for c in cells} >= {
        "table1", "table3", "table5", "table_noise", "table_batch_id", "table_batch_ood", "ablation_ood",
        "figure_bandwidth", "figure_alpha",
    }  # fmt: skip
    found = {c.name: c for c in cells}
    hidden = found["table1/airfoil/fcn3/k_mixup/paper,layer=hidden"]
    words = ["dataset=airfoil", "model=fcn3", "method=k_mixup", "preset=paper", "experiment=table1"]
    assert training_commands(hidden, Path("/nowhere"))[0][:5] == words
    assert hidden.stack[0][0] == {"method.layer": "hidden"}
    assert found["ablation_ood/crime/fcn3/cmixup/paper,bandwidth=0.03"].stack[0][0] == {"method.bandwidth": 0.03}
    assert found["table1/airfoil/fcn3/cmixup/tuned,bandwidth=__std_,_3.0_,train.lr=0.03-c719f976286e"].stack[0][0] == {}


@pytest.mark.slow
@pytest.mark.usefixtures("in_process", "no_git")
def test_a_cell_of_a_stack_of_several_is_trained_again_with_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["dataset=no2", "debug=tiny", "preset=paper", "experiment.name=table1", "device=cpu", "method=cmixup"]
    jobs = [
        plan_job(compose_train([*words, f"method.bandwidth={b}", "seeds=[1,0]", f"out={tmp_path}"])) for b in (0.1, 3)
    ]
    write_reports(tmp_path / "results", [read_report(run) for run in execute_together(jobs)])
    trained: list[list[Any]] = []
    together: Any = trained_again.train_items

    def noting(items: Any, *given: Any, **more: Any) -> None:
        trained[:] = [[(job.options["method.bandwidth"], job.seeds) for job in item.jobs] for item in items]
        together(items, *given, **more)

    monkeypatch.setattr(trained_again, "train_items", noting)
    for options, found in ((("all=1",), "2 of 2"), (("count=1", "seed=4"), "1 of 1")):
        status, out, wrong = verify(tmp_path / "results", capsys, *options)
        assert trained == [[(0.1, [1, 0]), (3.0, [1, 0])]]  # once, and whole for one cell too
        assert (status, wrong) == (0, "")
        assert f"{found} cells repeat to the last bit" in out


def test_cells_can_be_narrowed(published: Path) -> None:
    assert {c.name.split("/")[1] for c in published_cells(RESULTS, ["no2"])} == {"no2"}
    assert {c.name.split("/")[0] for c in published_cells(RESULTS, [], ["table3", "ablation_ood"])} == {
        "table3", "ablation_ood",
    }  # fmt: skip
    networks = {c.first["model"] for c in published_cells(RESULTS, models=["lstnet", "resnet18"])}
    assert networks == {"lstnet", "resnet18"}
    with pytest.raises(InputError, match="holds no published run of fcn3"):
        published_cells(published, ["no2"])


def test_the_size_of_a_difference() -> None:
    assert Difference("a", 2.0, 1.5).size == (0.25, 0.5)
    assert Difference("a", 0.0, 1.5).size == (math.inf, 1.5)
    assert Difference("a", 1.0, None).size == Difference("a", 1.0, math.nan).size == (math.inf, math.inf)
    assert str(Difference("a", 2.0, 1.5)) == "a 2.0 -> 1.5 (absolute 0.5, relative 0.25)"


def test_numbers_are_compared_bit_by_bit_and_nan_equals_nan() -> None:
    def report(**scores: float) -> dict[str, Any]:
        return {"seed": 0, "scores": {"val": {}, "test": scores}, "facts": {}, "best_epoch": 1}

    assert report_differences(report(r=math.nan, rmse=0.1), report(r=math.nan, rmse=0.1, more=1.0)) == []
    (found,) = report_differences(report(rmse=0.3), report(rmse=0.1 + 0.2))
    assert found.name == "seed 0 test rmse"


def test_configurations_are_compared_where_both_have_a_key() -> None:
    then = {"model": {"name": "a"}, "dataset": {"x": 1, "old": 2}, "train": {"lr": 0.1, "track": ["test"]},
            "method": {"_target_": "before", "pairing": "uniform", "bandwidth": ["std", 3.0]}}  # fmt: skip
    now = {"model": {"name": "a"}, "dataset": {"x": 1.0, "new": 3}, "train": {"lr": 0.2, "track": ["test"]},
           "method": {"_target_": "now", "pairing": {"_target_": "p", "k": 4}, "bandwidth": ("std", 3.0)}}  # fmt: skip
    assert config_differences(then, now) == [Difference("train.lr", 0.1, 0.2)]
