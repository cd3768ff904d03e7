"""The simulations of the theorems: estimators against direct computation, moments of the data, and known limits."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scripts.analysis import theory
from scripts.analysis.__main__ import main
from scripts.analysis.estimators import distance_spread, draw_partners, nadaraya_watson, ridge_fit
from scripts.analysis.simulations import Finding, Theorem1, Theorem2, Theorem3, index_rows, sparse_theta
from scripts.analysis.theory import Setting, all_settings
from scripts.records.csv_rows import read_csv
from scripts.records.experiment import RESULTS
from scripts.report.paper.theory import FILE

SMALL1 = Theorem1(n=300, p=8, test=60)
SMALL2 = Theorem2(n=800, p=8, test=50)
SMALL3 = Theorem3(n=60, p=20, penalty=5.0)


def by_name(findings: list[Finding]) -> dict[tuple[str, str, str], float]:
    return {(f.method, f.theta, f.metric): f.value for f in findings}


def test_partners_follow_the_kernel_and_distances_leave_out_a_row_with_itself() -> None:
    """The share of each partner over evenly spread levels is its probability."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 3))
    level = np.tile(((np.arange(20000) + 0.5) / 20000)[:, None], 7)
    for others in (False, True):
        partners = draw_partners(x, x, 0.8, level, others=others)
        weight = np.exp(-np.square(x[:, None] - x).sum(axis=2) / (2 * 0.8**2))
        if others:
            np.fill_diagonal(weight, 0)
        expected = weight / weight.sum(axis=1, keepdims=True)
        share = np.stack([(partners == j).mean(axis=0) for j in range(7)], axis=1)
        np.testing.assert_allclose(share, expected, atol=2e-4)
    x = np.array([[0.0], [1.0], [3.0]])  # squared distances 1, 9, 4
    assert distance_spread(x, x, others=True) == pytest.approx(np.std([1.0, 9.0, 4.0]))


def test_nadaraya_watson_is_the_weighted_mean_of_a_direct_loop() -> None:
    rng = np.random.default_rng(5)
    t, y = rng.uniform(0, 6, 80), rng.normal(size=80)
    at = np.array([0.1, 2.0, 5.9, 40.0])  # at the last every weight underflows: the nearest decides
    estimate = nadaraya_watson(t, y, at, 0.15)
    for point, value in zip(at[:3], estimate[:3], strict=True):
        weights = [math.exp(-(((point - other) / 0.15) ** 2)) for other in t]
        assert value == pytest.approx(sum(w * v for w, v in zip(weights, y, strict=True)) / sum(weights), abs=1e-4)
    assert estimate[3] == pytest.approx(y[t.argmax()], rel=1e-6)


def test_moments_of_the_single_index_model() -> None:
    rows = index_rows(20000, 10, np.random.default_rng(7), scale=2.0, rate=0.4)
    theta = sparse_theta(10)
    assert np.linalg.norm(theta) == pytest.approx(1)
    assert np.count_nonzero(theta) == 5
    assert np.bincount(rows.cluster)[1:].tolist() == pytest.approx([4000] * 5, rel=0.06)
    for k in (1, 5):
        x, y = rows.x[rows.cluster == k], rows.y[rows.cluster == k]
        np.testing.assert_allclose(x.mean(axis=0), k * theta, atol=0.02)
        np.testing.assert_allclose(x.std(axis=0), math.hypot(0.05, 0.25), rtol=0.05)
        assert y.mean() == pytest.approx(2 * math.exp(0.4 * k + (0.4 * 0.05) ** 2 / 2), rel=0.002)
        # The link's slope times the spread of theta' z, beside the noise of y.
        assert y.std() == pytest.approx(math.hypot(0.8 * math.exp(0.4 * k) * 0.05, 0.05), rel=0.05)


@pytest.mark.parametrize("simulation", [SMALL1, SMALL2, SMALL3], ids=["1", "2", "3"])
def test_a_seed_decides_and_an_infinite_bandwidth_is_mixup(simulation: Theorem1 | Theorem2 | Theorem3) -> None:
    first, again, other = simulation.run(0), simulation.run(0), simulation.run(1)
    assert first == again
    assert by_name(first)["cmixup", "estimated", "mse"] != by_name(other)["cmixup", "estimated", "mse"]
    # A method alone has the numbers that it has beside the others.
    alone = by_name(simulation.run(0, ("cmixup",)))
    assert alone.items() <= by_name(first).items()
    errors = by_name(replace(simulation, bandwidth=math.inf).run(0, ("mixup", "cmixup")))
    mixup = {key[1:]: value for key, value in errors.items() if key[0] == "mixup"}
    cmixup = {key[1:]: v for key, v in errors.items() if key[0] == "cmixup" and key[2] != "bandwidth_over_bound"}
    assert mixup == cmixup
    assert by_name(first)["cmixup", "estimated", "mse"] != mixup["estimated", "mse"]


def test_the_error_in_the_test_domain_is_that_of_drawn_rows() -> None:
    given = replace(SMALL3, noise=0.05)
    (x, y), (other, other_y), theta = given.rows(4)
    estimate = ridge_fit(np.concatenate([x, other]), np.concatenate([y, other_y]), given.penalty)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200_000, given.p)) * np.where(np.arange(given.p) < given.invariant, 1, given.scale)
    y = x @ theta + rng.normal(0, given.noise, len(x))
    errors = by_name(given.run(4, ("erm",)))
    assert errors["erm", "estimated", "mse"] == pytest.approx(np.mean(np.square(x @ estimate - y)), rel=0.02)
    assert errors["erm", "estimated", "theta_error"] == pytest.approx(np.sum(np.square(estimate - theta)), rel=1e-6)


def test_the_command_writes_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theory, "all_settings", lambda: (Setting("base", 1, SMALL1),))
    monkeypatch.setattr(theory, "answer_table", lambda _: "")
    monkeypatch.setattr(theory, "theory_figures", lambda _: {})
    main(["theory", "seeds=3", f"results={tmp_path}"])
    rows = read_csv(tmp_path / FILE)
    assert list(rows[0]) == list(read_csv(RESULTS / FILE)[0])
    assert {r["seed"] for r in rows} == {"0", "1", "2"}
    with pytest.raises(SystemExit):
        main(["theory", "seeds=1", f"results={tmp_path}"])


@pytest.mark.slow
def test_the_published_numbers_are_those_of_the_simulations() -> None:
    """One seed of one place of each theorem is computed again."""
    rows = read_csv(RESULTS / FILE)
    keys = [name for name in rows[0] if name != "value"]
    published = {tuple(r[name] for name in keys): float(r["value"]) for r in rows}
    assert len(published) == len(rows)
    for setting in all_settings():
        if (setting.theorem, setting.name, setting.simulation.n) in {(1, "N", 500), (2, "N", 1000), (3, "N", 200)}:
            for row in setting.rows(3):
                value = published[tuple(str(row[name]) for name in keys)]
                assert value == pytest.approx(float(row["value"]), rel=1e-3, abs=1e-6), row
