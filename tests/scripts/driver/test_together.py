"""Jobs that differ only in what their methods draw with train as one stack, and their records say with whom."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cmixup.data import RegressionData, Split
from cmixup.saved_run import load_run
from cmixup.training.trainer import Stack
from scripts.driver.execute import Diverged, execute_together
from scripts.driver.job import Job, stack_key
from scripts.driver.runs import RunFolder, load_reports
from scripts.plan.schedule import stacks_of
from tests.scripts.jobs import execute_job, planned, report_of


def cmixup_job(out: Path, bandwidth: float, *more: str) -> Job:
    return planned(out, "method=cmixup", f"method.bandwidth={bandwidth}", *more)


def test_jobs_of_two_bandwidths_train_together_as_they_do_alone(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    jobs = [cmixup_job(tmp_path / "a", 0.01, "seeds=[4,2]"), cmixup_job(tmp_path / "a", 5.0, "seeds=[2,7,0]")]
    written = execute_together(jobs, lambda epoch, rows: heard.append((epoch, len(rows))))
    assert heard == [(1, 5), (2, 5)]
    assert written == [jobs[0].run_folder(2), jobs[0].run_folder(4), *(jobs[1].run_folder(s) for s in (0, 2, 7))]
    cells = [{"options": job.options, "seeds": job.seeds} for job in jobs]
    for job in jobs:
        for seed in job.seeds:
            report = report_of(job.run_folder(seed))
            assert (report["stack"], report["stack_seeds"], report["stack_cells"]) == (5, job.seeds, cells)
            assert report["bandwidth"] == job.options["method.bandwidth"] == report["facts"]["bandwidth"]
    alone = [execute_job(cmixup_job(tmp_path / "b", bandwidth, "seed=2"))[0] for bandwidth in (0.01, 5.0)]
    for job, folder in zip(jobs, alone, strict=True):
        ours, theirs = (report_of(f) for f in (job.run_folder(2), folder))
        assert "stack_cells" not in theirs
        assert ours["scores"]["test"] == pytest.approx(theirs["scores"]["test"], rel=1e-4)
        one, other = (torch.load(f / "checkpoint.pt", weights_only=True) for f in (job.run_folder(2), folder))
        assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)


@pytest.mark.parametrize(
    "words",
    [["method.layer=hidden"], ["train.epochs=5"], ["method/pairing=uniform"], ["method/lam=constant"],
     ["method/mixing=cutmix"], ["method=mixup"], ["checkpoint_every=1"], ["preset=released"]],
)  # fmt: skip
def test_jobs_that_differ_in_anything_else_do_not_share_a_stack(words: list[str], tmp_path: Path) -> None:
    base, other = planned(tmp_path, "method=cmixup"), planned(tmp_path, "method=cmixup", *words)
    assert stack_key(base) != stack_key(other)


def test_jobs_whose_draws_differ_share_a_stack(tmp_path: Path) -> None:
    base = stack_key(planned(tmp_path, "method=cmixup"))
    for words in (["method.alpha=0.1"], ["method.bandwidth=auto"], ["method.lam_per=batch"], ["seeds=3"],
                  ["train.lr=0.5", "train.weight_decay=0.1"]):  # fmt: skip
        assert stack_key(planned(tmp_path, "method=cmixup", *words)) == base
    for method, word, shared in (("sk_mixup", "tau_max=5", True), ("sk_mixup", "distance=inputs", False),
                                 ("local_mixup", "quantile=0.5", True), ("regmixup", "eta=0.3", False)):  # fmt: skip
        keys = [stack_key(planned(tmp_path, f"method={method}", *words)) for words in ([], [f"method.{word}"])]
        assert (keys[0] == keys[1]) == shared


def test_jobs_of_two_rates_train_together_each_by_its_own(tmp_path: Path) -> None:
    rates = [("train.lr=0.001", "train.weight_decay=0"), ("train.lr=0.01", "train.weight_decay=0.1")]
    jobs = [planned(tmp_path / "a", "method=mixup", "seeds=[0,1]", *words) for words in rates]
    execute_together(jobs)
    for number, (job, words) in enumerate(zip(jobs, rates, strict=True)):
        # In a stack of as many models the products round alike, and every update is elementwise.
        alike = planned(tmp_path / f"{number}", "method=mixup", "seeds=[0,1,2,3]", *words)
        execute_job(alike)
        for seed in (0, 1):
            ours, theirs = (report_of(one.run_folder(seed)) for one in (job, alike))
            assert ours["scores"] == theirs["scores"]
            assert ours["config"]["train"]["lr"] == float(words[0].partition("=")[2])


def test_jobs_that_cannot_be_stacked_are_alone(tmp_path: Path) -> None:
    for method in ("rc_mixup", "cmixup_h", "cmixup_h_pool"):  # the latter two: the stack itself chooses partners
        keys = [stack_key(planned(tmp_path, f"method={method}", f"method.bandwidth={b}")) for b in (0.1, 0.2)]
        assert keys[0] != keys[1]
    saved = [stack_key(cmixup_job(tmp_path, b, "checkpoint_every=1")) for b in (0.1, 0.2)]
    assert saved[0] != saved[1]


def test_stacks_hold_about_as_many_models_as_are_fast(tmp_path: Path) -> None:
    cells = [cmixup_job(tmp_path, 0.1 + k, "seeds=4") for k in range(5)]
    other = planned(tmp_path, "method=erm", "seeds=4")
    assert stacks_of([*cells[:2], other, *cells[2:]], models=8) == [[0, 1], [3, 4], [5], [2]]
    assert [len(stack) for stack in stacks_of(cells, models=1)] == [1] * 5
    assert [len(stack) for stack in stacks_of(cells, models=20)] == [5]


def test_a_run_that_diverges_is_named_with_its_job_and_the_others_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = Stack.train

    def third_diverges(*given: Any) -> Any:
        results = train(*given)
        results[2].failure = "the training loss is not finite at epoch 2, step 1"
        return results

    monkeypatch.setattr(Stack, "train", third_diverges)
    jobs = [cmixup_job(tmp_path, b, "seeds=2") for b in (0.1, 0.2)]
    with pytest.raises(Diverged, match="seed 0: the training loss is not finite") as raised:
        execute_together(jobs)
    assert str(jobs[1].folder) in str(raised.value)
    assert str(jobs[0].folder) + " " not in str(raised.value) + " "
    assert [(r["bandwidth"], r["seed"]) for r in load_reports(tmp_path)] == [(0.1, 0), (0.1, 1), (0.2, 1)]
    again = [cmixup_job(tmp_path, b, "seeds=2") for b in (0.1, 0.2)]
    assert [job.pending for job in again] == [[], [0]]


class UnevenSplits:
    """A dataset whose odd seeds have a test row less, as grouped splits may."""

    def __init__(self, inside: Any):
        self.inside = inside

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inside, name)

    def load(self, seed: int) -> RegressionData:
        data = self.inside.load(seed)
        keep = slice(len(data.test) - seed % 2)
        return replace(data, test=Split(data.test.x[keep], data.test.y[keep], data.test.domain[keep]))


def test_seeds_of_two_stacks_keep_their_own_folders(tmp_path: Path) -> None:
    """Seeds 0 and 2 are one stack and 1 another: each folder has its seed's rows, predictions and weights."""
    job = planned(tmp_path, "seeds=0..2", "method=cmixup")
    job = replace(job, dataset=UnevenSplits(job.dataset))
    for seed, folder in enumerate(execute_job(job)):
        report, test = report_of(folder), job.dataset.load(seed).test
        assert (report["seed"], report["stack"], report["stack_seeds"]) == (
            seed,
            *((1, [1]) if seed == 1 else (2, [0, 2])),
        )
        with torch.no_grad():
            predicted = load_run(folder).predict(test.x, scaled=True)
        error = (torch.as_tensor(predicted) - test.y).double().square().mean().sqrt().item()
        assert error == pytest.approx(report["scores"]["test"]["rmse"], rel=1e-6)
        assert RunFolder(folder).predictions()["test"].target == pytest.approx(test.y.numpy())
