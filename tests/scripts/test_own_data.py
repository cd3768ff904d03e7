"""Own images and own arrays from the command to predictions: trained, resumed, tuned, swept, followed by wandb."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.errors import InputError
from cmixup.saved_run import load_run
from scripts import bandwidth, collect, predict, tune
from scripts.config.compose import compose_train, tuned_path
from scripts.config.words import hydra_words
from scripts.driver.job import Job, plan_job
from scripts.driver.logger import pictures
from scripts.driver.runs import RunFolder
from tests.datasets.test_own_images import DIGITS, N, folder_of
from tests.scripts.jobs import execute_job, report_of

pytestmark = pytest.mark.usefixtures("no_git_session")
SMALL = ("model.width=2", "train.epochs=2", "train.batch_size=8", "logger=none")


def job_of(out: Path, *words: str) -> Job:
    return plan_job(compose_train(hydra_words([*words, f"out={out}"])))


def words_of(place: Path) -> list[str]:
    return [f"images={place / 'photos'}", f"labels={place / 'labels.csv'}", "target=ink", "dataset.size=8"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of digits with their labels, and arrays of the same."""
    place = tmp_path_factory.mktemp("own")
    folder_of(place, patient=[f"00{k % 6}" for k in range(N)])
    x = np.stack(DIGITS).reshape(N, -1)
    np.savez(place / "d.npz", x=x, y=x.sum(axis=1))
    return place


@pytest.fixture(scope="module")
def images_run(place: Path, tmp_path_factory: pytest.TempPathFactory, no_git_session: None) -> Job:
    job = job_of(tmp_path_factory.mktemp("out"), *words_of(place), "dataset.augment=crop+flip", *SMALL)
    execute_job(job)
    return job


@pytest.fixture(scope="module")
def arrays_run(place: Path, tmp_path_factory: pytest.TempPathFactory, no_git_session: None) -> Job:
    job = job_of(tmp_path_factory.mktemp("out"), f"arrays={place / 'd.npz'}", "train.epochs=1", "logger=none")
    execute_job(job)
    return job


def test_a_run_on_images_predicts_its_own_numbers_from_the_files(
    images_run: Job, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the library and by the command, whose error is that of the labels."""
    folder, test = images_run.run_folder(0), images_run.dataset.load(0).test
    kept = RunFolder(folder).predictions()["test"]
    paths = [str(test.x.files.files[row]) for row in test.x.rows.tolist()]
    mine = load_run(folder).predict(paths)
    np.testing.assert_allclose(mine["ink"], kept.prediction[""][:, 0], rtol=1e-5)
    out = tmp_path / "p.csv"
    given = [f"run={folder}", f"images={place / 'photos'}", f"out={out}"]
    predict.main([*given, f"labels={place / 'labels.csv'}", "id=patient"])
    text = {"picture": str, "patient": str}
    frame, labels = (pd.read_csv(path, dtype=text) for path in (out, place / "labels.csv"))
    assert list(frame) == ["file", "patient", "ink"]
    assert frame["patient"].equals(labels["patient"])
    assert [Path(file).stem for file in frame["file"]] == labels["picture"].tolist()
    by_name = frame.set_index("file")["ink"]
    below = [Path(path).relative_to(place / "photos").as_posix() for path in paths]
    np.testing.assert_allclose(by_name[below], kept.prediction[""][:, 0], rtol=1e-5)
    error = frame["ink"] - labels["ink"]
    line = re.search(rf"ink: rmse (\S+), mean absolute error (\S+), over {N} rows", capsys.readouterr().out)
    assert line
    expected = np.sqrt((error**2).mean()), error.abs().mean()
    np.testing.assert_allclose([float(number) for number in line.groups()], expected, rtol=1e-6)  # last digits vary
    for words, message in (
        ([given[0], f"table={place / 'labels.csv'}"], "was not trained on table=; give images="),
        ([*given, f"labels={place / 'labels.csv'}", "id=who"], "id 'who' is no column of "),
        ([given[0], f"arrays={place / 'd.npz'}", given[1]], "must name new data to predict"),
    ):
        with pytest.raises(SystemExit):
            predict.main(words)
        assert message in capsys.readouterr().err
    predict.main(given)
    assert pd.read_csv(out).set_index("file")["ink"].sort_index().equals(by_name.sort_index())


@pytest.mark.slow
def test_the_library_alone_predicts_with_a_run_on_images(images_run: Job, place: Path, tmp_path: Path) -> None:
    shutil.copytree(Path(bandwidth.__file__).parents[1] / "cmixup", tmp_path / "cmixup")
    code = (
        f"import cmixup, sys; run = cmixup.load_run({str(images_run.run_folder(0))!r})\n"
        f"print(run.predict({str(place / 'photos')!r})['ink'].sum()); print('models' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    total, models = done.stdout.split()
    assert float(total) == pytest.approx(load_run(images_run.run_folder(0)).predict(place / "photos")["ink"].sum())
    assert models == "False"


def test_a_run_on_images_that_was_killed_goes_on_as_if_it_had_not(images_run: Job, place: Path, tmp_path: Path) -> None:
    """After its first epoch; the views of the second are the same ones, and so is every digit."""

    def kill(epoch: int, _: Any) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    words = [*words_of(place), "dataset.augment=crop+flip", *SMALL]
    with pytest.raises(KeyboardInterrupt):
        execute_job(job_of(tmp_path, *words), kill)
    job = job_of(tmp_path, *words)
    assert (job.run_folder(0) / "resume.pt").is_file()
    execute_job(job)
    states = [torch.load(one.run_folder(0) / "checkpoint.pt", weights_only=True) for one in (job, images_run)]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_another_picture_in_the_folder_is_another_run(place: Path, tmp_path: Path, images_run: Job) -> None:
    shutil.copytree(place, tmp_path / "own")
    words = [*words_of(tmp_path / "own"), *SMALL, "method=erm", "train.epochs=1"]
    execute_job(job_of(tmp_path, *words))
    assert job_of(tmp_path, *words).pending == []
    shutil.copy(tmp_path / "own/photos/000.png", tmp_path / "own/photos/new.png")
    assert job_of(tmp_path, *words).pending == [0]


@pytest.mark.parametrize("method", ["cutmix_cmixup", "puzzlemix_cmixup", "automix_cmixup"])
def test_mixing_of_images_takes_the_partners_of_cmixup(method: str, place: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, *words_of(place), f"method={method}", *SMALL, "train.epochs=1", "dataset.size=16")
    execute_job(job)
    report = report_of(job.run_folder(0))
    assert report["config"]["method"]["pairing"]["name"] == "second_batch"
    assert report["bandwidth"] > 0
    assert np.isfinite(report["scores"]["test"]["rmse"])


def test_seeds_on_arrays_are_a_stack_and_predict(place: Path, tmp_path: Path) -> None:
    words = [f"arrays={place / 'd.npz'}", "train.epochs=30", "logger=none", "train.batch_size=8", "model.width=16"]
    job, lazy = (job_of(tmp_path, *words, "seeds=2", *more) for more in ((), ("dataset.memory=0",)))
    execute_job(job)
    execute_job(lazy)
    reports = [report_of(one.run_folder(1)) for one in (job, lazy)]
    assert [report["stack"] for report in reports] == [2, 2]
    assert reports[0]["scores"] == reports[1]["scores"]
    predict.main([f"run={job.run_folder(1)}", f"arrays={place / 'd.npz'}", f"out={tmp_path / 'p.csv'}"])
    written, kept = pd.read_csv(tmp_path / "p.csv")["y"], RunFolder(job.run_folder(1)).predictions()["test"]
    x = job.dataset.load(1).test
    rows = [int(np.flatnonzero(np.stack(DIGITS).reshape(N, -1).sum(axis=1) == y)[0]) for y in x.y[:, 0]]
    np.testing.assert_allclose(written[rows], kept.prediction[""][:, 0], rtol=1e-4)


NEW: list[tuple[dict[str, Any], str]] = [
    ({"x": np.float64(1)}, r"x must have shape \(N, 64\), got \(\)"),
    (
        {"x": np.ones((4, 64)), "y": np.ones(3)},
        r"y must be numbers \(4, 1\) as the labels of the run, got float64 \(3,",
    ),
    ({"x": np.ones((4, 64)), "y": np.ones((4, 2))}, r"y must be numbers \(4, 1\)"),
    ({"x": np.ones((4, 64)), "y": np.array(["1"] * 4)}, r"y must be numbers .*, got <U1 \(4,\)"),
]


@pytest.mark.parametrize(("arrays", "message"), NEW)
def test_new_arrays_that_do_not_fit_the_run_are_named(
    arrays: dict[str, Any], message: str, arrays_run: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "new.npz", **arrays)
    with pytest.raises(SystemExit):
        predict.main([f"run={arrays_run.run_folder(0)}", f"arrays={tmp_path / 'new.npz'}", f"out={tmp_path / 'p.csv'}"])
    assert re.search(f"^error: .*new.npz: {message}", capsys.readouterr().err)


def test_a_batch_of_one_image_that_the_network_cannot_take_is_named(place: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the last batch has one row, .*: give another batch_size, or drop_last"):
        execute_job(job_of(tmp_path, *words_of(place), *SMALL, "train.batch_size=13"))  # of 14 rows


def test_own_data_have_tuned_values_of_their_own(place: Path, tmp_path: Path) -> None:
    """They are found by the folder, the table and the target, however these are spelt."""
    words = [*words_of(place), "method=erm"]
    job = job_of(tmp_path, *words)
    tune.write_values(tuned_path("images", "tuned_default", job.config), "erm", {"train.lr": 0.25})
    assert job_of(tmp_path, *words, "preset=tuned_default").settings.lr == 0.25
    spelt = [f"images={place}/../{place.name}/photos", *words[1:], "preset=tuned_default"]
    assert job_of(tmp_path, *spelt).settings.lr == 0.25
    with pytest.raises(InputError, match=r"erm has not been tuned on images; python -m scripts.tune dataset=images"):
        job_of(tmp_path, *words, "target=patient", "preset=tuned_default")


def test_the_bandwidth_of_own_images_is_that_of_their_labels(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bandwidth.bandwidth_grid(np.array([1, np.nan, 3])) == bandwidth.bandwidth_grid(np.array([1.0, 3.0]))
    monkeypatch.setattr(bandwidth, "write_atomically", lambda *_: None)
    seen: list[np.ndarray] = []
    monkeypatch.setattr(bandwidth, "bandwidth_grid", lambda labels: seen.append(labels) or [1.0])
    bandwidth.main(words_of(place))
    assert set(seen[0][:, 0]) <= {float(digit.sum()) for digit in DIGITS}
    assert seen[0].shape == (14, 1)


def test_a_sweep_over_own_images_is_collected(place: Path, tmp_path: Path) -> None:
    for epochs in (1, 2):
        execute_job(job_of(tmp_path, *words_of(place), *SMALL, "method=erm", f"train.epochs={epochs}"))
    collect.main([str(tmp_path / "runs"), "over=train.epochs", f"out={tmp_path}"])
    assert pd.read_csv(tmp_path / "collected/images-erm-train.epochs.csv")["value"].tolist() == [1, 2]


ROOT = Path(bandwidth.__file__).parents[1]
SECTIONS = re.split(r"^## ", (ROOT / "docs/own_data.md").read_text(), flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("title", ["A table", "A folder of images", "Arrays",
                                   pytest.param("A series", marks=pytest.mark.data)])  # fmt: skip
def test_the_commands_of_the_page_end_in_the_predictions_that_it_shows(title: str, tmp_path: Path) -> None:
    """Errors are those of the page within a tenth: training differs between processors."""
    (section,) = [text for text in SECTIONS if text.startswith(f"{title}\n")]
    write, commands, shown = (
        re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)[0]
        for kind, text in (("bash", SECTIONS[0]), ("bash", section), ("text", section))
    )
    script = "\n".join([write, commands]).replace("python -m", f"{sys.executable} -m")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()[-len(shown.splitlines()) :]
    number = r"\d+\.\d+"
    assert [re.sub(number, "", line) for line in printed] == [re.sub(number, "", line) for line in shown.splitlines()]
    mine, theirs = (np.array(re.findall(number, text), float) for text in ("\n".join(printed), shown))
    np.testing.assert_allclose(mine, theirs, rtol=0.1)


def test_wandb_shows_images_with_truth_and_prediction(images_run: Job) -> None:
    kept = RunFolder(images_run.run_folder(0)).predictions()
    x = images_run.dataset.load(0).test.x
    wandb = SimpleNamespace(Image=lambda image, caption: (image, caption))
    shown = pictures(wandb, kept, x)["test/images"]
    truth, predicted = kept["test"].target[:, 0], kept["test"].prediction[""][:, 0]
    assert [caption for _, caption in shown] == [
        f"truth {t:.4g}; prediction {p:.4g}" for t, p in zip(truth, predicted, strict=True)
    ]
    for (image, _), y in zip(shown, truth, strict=True):
        assert image.shape == (8, 8, 3)
        assert abs(int(image[:, :, 0].sum()) - y) < 0.05 * y
    assert pictures(wandb, kept, images_run.dataset.load(0).test.y) == {}
