"""Own data from the command to predictions: the four kinds as one table, and what images alone have."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from omegaconf import DictConfig

from cmixup.errors import InputError
from scripts import bandwidth, predict
from scripts.config.compose import compose_train
from scripts.driver.job import Job, plan_job
from scripts.driver.logger import pictures
from scripts.driver.runs import RunFolder
from scripts.train import run_training
from tests.datasets.test_own_images import DIGITS, N, folder_of
from tests.scripts.jobs import execute_job, killed_after

SMALL = ("model.width=2", "train.epochs=2", "train.batch_size=8", "logger=none")


def composed(out: Path, *words: str) -> DictConfig:
    return compose_train([*words, f"out={out}"])


def job_of(out: Path, *words: str) -> Job:
    return plan_job(composed(out, *words))


def words_of(place: Path) -> list[str]:
    return [f"images={place / 'photos'}", f"labels={place / 'labels.csv'}", "target=ink", "dataset.size=8"]


@dataclass(frozen=True)
class Kind:
    """How data of one kind are trained on and predicted; `{place}` is the folder of them all."""

    train: tuple[str, ...]
    new: tuple[str, ...]  # of the command; the rows of training again, in the order of their labels
    column: str  # of the predictions
    stack: int  # seeds that train as one
    bad: tuple[tuple[tuple[str, ...], str], ...]  # words of the command, and what its line says
    also: tuple[tuple[str, ...], ...] = ()  # words that are taken, too


KINDS = {
    "images": Kind(
        ("images={place}/photos", "labels={place}/labels.csv", "target=ink", "dataset.size=8", "model.width=2",
         "dataset.augment=crop+flip", "train.batch_size=8"),
        ("images={place}/photos", "labels={place}/labels.csv"), "ink", 1,
        ((("table={place}/labels.csv",), "was not trained on table=; give images="),
         (("images={place}/photos", "labels={place}/labels.csv", "id=who"), "id 'who' is no column of "),
         (("images={place}/photos", "labels={place}/labels.csv", "out={place}/labels.csv"), "another file than labels"),
         (("images={place}/photos", "labels={place}/more.csv"), "(dataset.skip_broken=true goes on without)"),
         (("images={place}/photos", "arrays={place}/d.npz"), "must name new data to predict")),
        (("images={place}/photos", "labels={place}/more.csv", "skip_broken=true"),
         ("images={place}/broken", "skip_broken=true")),
    ),
    "arrays": Kind(
        ("arrays={place}/d.npz", "train.batch_size=8"), ("arrays={place}/d.npz",), "y", 2,
        ((("arrays={place}/flat.npz",), "flat.npz: x must have shape (N, 64), got ()"),
         (("arrays={place}/fewer.npz",), "y must be numbers (4, 1) as the labels of the run, got float64 (3,"),
         (("arrays={place}/more.npz",), "y must be numbers (4, 1)"),
         (("arrays={place}/text.npz",), "got <U1 (4,)")),
        (("x={place}/x.npy",),),
    ),
    "table": Kind(
        ("table={place}/t.csv", "target=y", "train.batch_size=8"), ("table={place}/t.csv",), "y", 2,
        (((), "must name new data to predict, such as table=new.csv"),
         (("table=/nowhere.csv",), "no such file"),
         (("table={place}/t.csv", "out={place}/t.csv"), "out must be another file"),
         (("table={place}/cp1252.csv",), "encoding= names another, such as cp1252"),
         (("table={place}/t.csv", "dataset.horizon=3"), "dataset.horizon is none of those that say how"),
         (("table={place}/t.csv", "dataset.fill=linear"), "dataset.fill is none of those"),
         (("table={place}/words.csv",), "words.csv, row 1, column 'x1': 'old' is not a number")),
        tuple(("table={place}/cp1252.csv", f"{word}=cp1252") for word in ("encoding", "dataset.encoding")),
    ),
    "series": Kind(
        ("series={place}/rates.csv", "window=24", "horizon=3", "model=fcn3", "dataset.steps=all"),
        ("series={place}/before.csv",), "australia", 2,
        ((("table={place}/t.csv",), "was not trained on table=; give series="),
         (("series={place}/short.csv",), "short.csv has 5 rows with a target; a window needs 24"),
         (("series={place}/other.csv",), "other.csv has no column 'britain'"),
         (("series={place}/gap.csv",), "dataset.fill=previous or linear fills them"),
         (("series={place}/gap.csv", "fill=mean"), "fill must be one of none, previous, linear, got 'mean'"),
         (("series={place}/rates.csv", "id=day"), "rates.csv; there are none")),
        tuple(("series={place}/gap.csv", word) for word in ("dataset.fill=linear", "fill=previous")),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of digits with their labels, arrays and a table of the same, a series, and new data that do not fit."""
    place = tmp_path_factory.mktemp("own")
    folder_of(place, patient=[f"00{k % 6}" for k in range(N)])
    (place / "more.csv").write_text(f"{(place / 'labels.csv').read_text()}gone,1,000\n")
    shutil.copytree(place / "photos", place / "broken")
    (place / "broken" / "cut.png").write_bytes(next((place / "photos").glob("*.png")).read_bytes()[:80])
    x = np.stack(DIGITS).reshape(N, -1)
    np.savez(place / "d.npz", x=x, y=x.sum(axis=1))
    np.savez(place / "flat.npz", x=np.float64(1))
    for name, y in {"fewer": np.ones(3), "more": np.ones((4, 2)), "text": np.array(["1"] * 4)}.items():
        np.savez(place / f"{name}.npz", x=np.ones((4, 64)), y=y)
    table = pd.DataFrame(x[:, 2:5], columns=["x1", "x2", "x3"]).assign(y=x.sum(axis=1))
    table.to_csv(place / "t.csv", index=False)
    table[:1].assign(x1="old").to_csv(place / "words.csv", index=False)
    table[:1].assign(größe="ä").to_csv(place / "cp1252.csv", index=False, encoding="cp1252")
    np.save(place / "x.npy", x)
    rates = 1 + 0.01 * np.random.default_rng(0).normal(size=(160, 2)).cumsum(axis=0)
    frame = pd.DataFrame(rates.round(6), columns=["australia", "britain"])
    frame.insert(0, "day", pd.date_range("1990-01-01", periods=len(frame)).strftime("%d.%m.%Y"))
    parts = {"rates": frame, "before": frame[:-3], "short": frame[:5], "other": frame.drop(columns="britain"),
             "gap": frame.drop(index=150)}  # fmt: skip
    for name, part in parts.items():
        part.to_csv(place / f"{name}.csv", index=False)
    return place


def train_words(kind: str, place: Path) -> list[str]:
    given = [word.format(place=place) for word in KINDS[kind].train]
    return [*given, "seeds=0..1", "train.epochs=2", "logger=none"]


@pytest.fixture(scope="module", params=KINDS)
def user_run(request: pytest.FixtureRequest, place: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Job]:
    """A run of two seeds on data of each kind."""
    job = job_of(tmp_path_factory.mktemp(request.param), *train_words(request.param, place))
    execute_job(job)
    return request.param, job


def test_a_run_predicts_its_own_numbers(user_run: tuple[str, Job], place: Path, tmp_path: Path) -> None:
    """By the command, from the files; of a series, whose last test window is all that it is given."""
    kind, job = KINDS[user_run[0]], user_run[1]
    folder, out = RunFolder(job.run_folder(1)), tmp_path / "p.csv"
    predict.main([f"run={folder.path}", *(word.format(place=place) for word in kind.new), f"out={out}"])
    written, test = pd.read_csv(out), folder.predictions()["test"]
    kept, rows = test.prediction[""].reshape(len(test.target), -1), list[int]()
    if user_run[0] == "series":
        assert written["day"].tolist() == pd.date_range("1990-06-07", periods=3).strftime("%Y-%m-%d").tolist()
        kept, rows = test.prediction[""].reshape(-1, 2)[-3:], [0, 1, 2]
    else:
        truth = np.stack(DIGITS).reshape(N, -1).sum(axis=1)
        rows = [int(np.flatnonzero(truth == y)[0]) for y in test.target[:, 0]]
    np.testing.assert_allclose(written[kind.column][rows], kept[:, 0], rtol=1e-4)
    assert folder.report()["stack"] == kind.stack


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    user_run: tuple[str, Job], place: Path, tmp_path: Path
) -> None:
    """After its first epoch; of images the views of the second are the same ones, and so is every digit."""
    kind, whole = user_run
    words = [*train_words(kind, place), "checkpoint_every=1"]
    with pytest.raises(KeyboardInterrupt):
        execute_job(job_of(tmp_path, *words), killed_after(1))
    again, epochs = job_of(tmp_path, *words), set[int]()
    execute_job(again, lambda epoch, _: epochs.add(epoch))
    assert kind == "images" or epochs == {2}  # of images the second seed begins
    for seed in (0, 1):
        ours, theirs = (torch.load(job.run_folder(seed) / "checkpoint.pt", weights_only=True) for job in (again, whole))
        assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
        one, other = ((job.run_folder(seed) / "history.csv").read_text() for job in (again, whole))
        assert one == other


def test_new_data_that_do_not_fit_are_one_line_and_the_option_that_it_names_helps(
    user_run: tuple[str, Job], place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, job = user_run
    for words, message in KINDS[kind].bad:
        with pytest.raises(SystemExit) as stop:
            predict.main([f"run={job.run_folder(0)}", *(word.format(place=place) for word in words)])
        (line,) = capsys.readouterr().err.splitlines()
        assert (stop.value.code, line.startswith("error: ")) == (2, True)
        assert message in line
    for words in KINDS[kind].also:
        given = [word.format(place=place) for word in (*words, f"out={tmp_path / 'p'}")]
        predict.main([f"run={job.run_folder(0)}", *given])


@pytest.mark.parametrize("user_run", ["series"], indirect=True)
def test_naive_errors_stand_beside_every_score(
    user_run: tuple[str, Job], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values, job = pd.read_csv(place / "rates.csv")[["australia", "britain"]].to_numpy(), user_run[1]
    last_rows = range(127, 160 - 3)  # of the windows of test
    errors = np.array([values[row + step] - values[row] for row in last_rows for step in (1, 2, 3)])
    scores = RunFolder(job.run_folder(0)).report()["scores"]["test"]
    assert scores["rmse_naive_last_value"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-4)
    assert scores["mae_naive_last_value"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert {"rmse", "mae", "mape", "rmse_naive_week_before", "mape_naive_week_before"} <= scores.keys()
    run_training(composed(job.out, *train_words("series", place)))
    out = capsys.readouterr().out
    mean = np.mean([RunFolder(job.run_folder(seed)).report()["scores"]["test"]["rmse"] for seed in (0, 1)])
    better = mean < min(value for name, value in scores.items() if name.startswith("rmse_naive"))
    assert f"without a network: test last value rmse {scores['rmse_naive_last_value']:.4f}" in out
    assert f"training was {'better than all' if better else 'no better than the best'} of them by rmse" in out
    assert "rmse_naive" not in out


@pytest.mark.parametrize("user_run", ["images"], indirect=True)
def test_the_error_of_images_is_that_of_their_labels(
    user_run: tuple[str, Job], place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, given = tmp_path / "p.csv", [f"run={user_run[1].run_folder(0)}", f"images={place / 'photos'}"]
    predict.main([*given, f"labels={place / 'labels.csv'}", "id=patient", f"out={out}"])
    frame, labels = (pd.read_csv(path, dtype={"picture": str, "patient": str}) for path in (out, place / "labels.csv"))
    assert list(frame) == ["file", "patient", "ink"]
    assert frame["patient"].equals(labels["patient"])
    assert [Path(file).stem for file in frame["file"]] == labels["picture"].tolist()
    error = frame["ink"] - labels["ink"]
    line = re.search(rf"ink: rmse (\S+), mean absolute error (\S+), over {N} rows", capsys.readouterr().out)
    assert line
    expected = np.sqrt((error**2).mean()), error.abs().mean()
    np.testing.assert_allclose([float(number) for number in line.groups()], expected, rtol=1e-6)  # last digits vary
    predict.main([*given, f"out={out}"])  # without labels
    assert pd.read_csv(out).set_index("file")["ink"].sort_index().equals(frame.set_index("file")["ink"].sort_index())


def test_another_picture_in_the_folder_is_another_run(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "own")
    words = [*words_of(tmp_path / "own"), *SMALL, "method=erm", "train.epochs=1"]
    execute_job(job_of(tmp_path, *words))
    assert job_of(tmp_path, *words).pending == []
    shutil.copy(tmp_path / "own/photos/000.png", tmp_path / "own/photos/new.png")
    assert job_of(tmp_path, *words).pending == [0]


def test_a_batch_of_one_image_that_the_network_cannot_take_is_named(place: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the last batch has one row, .*: give another batch_size, or drop_last"):
        execute_job(job_of(tmp_path, *words_of(place), *SMALL, "train.batch_size=13"))  # of 14 rows


def test_the_bandwidth_of_own_images_is_that_of_their_labels(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bandwidth.bandwidth_grid(np.array([1, np.nan, 3])) == bandwidth.bandwidth_grid(np.array([1.0, 3.0]))
    monkeypatch.setattr(bandwidth, "write_atomically", lambda *_: None)
    seen: list[np.ndarray] = []
    monkeypatch.setattr(bandwidth, "bandwidth_grid", lambda labels: seen.append(labels) or [1.0])
    bandwidth.main(words_of(place))
    assert set(seen[0][:, 0]) <= {float(digit.sum()) for digit in DIGITS}
    assert seen[0].shape == (14, 1)


@pytest.mark.parametrize("user_run", ["images"], indirect=True)
def test_wandb_shows_images_with_truth_and_prediction(user_run: tuple[str, Job]) -> None:
    kept = RunFolder(user_run[1].run_folder(0)).predictions()
    test = user_run[1].dataset.load(0).test
    wandb = SimpleNamespace(Image=lambda image, caption: (image, caption))
    captioned_images = pictures(wandb, kept, test.x)["test/images"]
    truth, predicted = kept["test"].target[:, 0], kept["test"].prediction[""][:, 0]
    assert [caption for _, caption in captioned_images] == [
        f"truth {t:.4g}; prediction {p:.4g}" for t, p in zip(truth, predicted, strict=True)
    ]
    for (image, _), y in zip(captioned_images, truth, strict=True):
        assert image.shape == (8, 8, 3)
        assert abs(int(image[:, :, 0].sum()) - y) < 0.05 * y
    assert pictures(wandb, kept, test.y) == {}
