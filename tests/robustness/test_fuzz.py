"""The trials of damaged files and of command lines: short ones with a seed, and that they see faults."""

import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import cmixup
from cmixup.errors import InputError
from scripts.config.compose import compose_train, override_word
from scripts.driver.job import plan_job
from tests.robustness import determinism, fuzz_config, fuzz_files
from tests.robustness.attempts import judged, run_attempts


def test_damaged_files(tmp_path: Path) -> None:
    assert fuzz_files.run(80, 11, tmp_path).failures == ()


def test_hostile_command_lines(tmp_path: Path) -> None:
    numbers = [k for k in range(200) if fuzz_config.command_line(random.Random(f"5 {k}"))[0] == "dataset=no2"][:8]  # noqa: S311
    assert [fuzz_config.attempt(number, 5) for number in numbers] == [""] * len(numbers)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("trial", [fuzz_files, fuzz_config])
def test_longer_trials(trial: object, tmp_path: Path) -> None:
    assert trial.run(600, 3, tmp_path).failures == ()  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_same_run_again(tmp_path: Path) -> None:
    found = determinism.run(4, 0, tmp_path)
    assert (found.held, found.failures) == (4, ())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("dataset.max_rows={_target_:builtins.print}", "dataset.max_rows must be a int here, got builtins.print"),
        (f"method={'x' * 3000}", "method must be one of "),
        (f"dataset=crime dataset.folds={10**400}", r"dataset.folds must be a whole number within \+-922"),
        (f"dataset=exchange_rate dataset.horizon=-{10**400}", "dataset.horizon must be a whole number within "),
    ],
)
def test_words_that_a_trial_fell_over_are_one_line(words: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        plan_job(compose_train(["dataset=csv", "dataset.synthetic=true", *words.split()]))
    assert judged(caught.value) == ""
    assert override_word("method.search", "x" * 3000) == f'method.search="{"x" * 3000}"'


def test_crashes_hangs_and_wrong_answers_are_seen_and_cost_one_attempt_each(tmp_path: Path) -> None:
    def attempt(number: int) -> str:
        if number == 2:
            os._exit(9)
        if number == 4:
            time.sleep(60)
        return "wrong" if number == 5 else ""

    found = run_attempts("x", "y", attempt, 8, tmp_path, hangs=1.0)
    assert (found.tried, found.held) == (8, 5)
    assert found.failures == ("attempt 2 ends its process with exit code 9", "attempt 4 takes more than 1 s", "wrong")
    assert (tmp_path / "progress").read_text() == "8/8"


# ---- single protections, each with the value that broke it


def test_labels_so_near_that_their_squares_underflow_are_told_apart() -> None:
    rows = cmixup.BatchPartnerSampler(0.0).probabilities(
        torch.zeros(1), torch.tensor([5e-324, 0.0], dtype=torch.float64)
    )
    assert rows.tolist() == [[0.0, 1.0]]


def test_tiny_vectors_have_directions() -> None:
    vectors = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    given = {"bandwidth": 0.5, "kernel": "cosine"}
    tiny, plain = (cmixup.PartnerSampler(v, **given).probabilities(0) for v in (vectors * 1e-161, vectors))  # type: ignore[arg-type]
    assert np.allclose(tiny, plain, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cmixup.load_run(7), "folder must be a path, got 7"),  # type: ignore[arg-type]
        (lambda: cmixup.load_run("x" * 5000), "folder must be a path, got 'xxx"),
        (lambda: cmixup.load_run("\n"), r"folder must be a path, got '\\n'"),
        (lambda: cmixup.load_run(".", "meta"), "device must be one that this machine has, .* got 'meta'"),
        (lambda: cmixup.Beta(2.0).sample(10**15), "n must be a number of examples that memory can hold, got 10000"),
        (
            lambda: cmixup.PartnerSampler([1.0, 2.0], 1.0, space=cmixup.LabelSpace(period=3, scale=1e-320)),
            "period divided by scale must be within",
        ),
        (lambda: cmixup.LabelSpace(torch.zeros(3, device="meta")), "scale must be a number or a sequence"),  # type: ignore[arg-type]
        (lambda: cmixup.mix(torch.ones(3), torch.ones(3), torch.ones(3, device="meta")), "lam must have values"),
    ],
)
def test_one_line_names_argument_and_value(call: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()  # type: ignore[operator]
