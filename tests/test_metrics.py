import math
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.metrics import (
    METRICS,
    crps,
    evaluate,
    evaluate_normal,
    metric,
    metric_of,
    mse,
    nll,
    parse_score,
    score,
    std_factor,
    with_everywhere,
)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)[:, None]


def suited(name: str, prediction: torch.Tensor) -> torch.Tensor:
    """Return predictions as a metric takes them: with standard deviations where it scores distributions."""
    return torch.cat([prediction, torch.full_like(prediction, 0.5)], dim=-1) if METRICS[name].normal else prediction


SOME, OF = [1, 2, 6], [1, 4, 2]
X = np.arange(5.0)
TARGETS = np.stack([X, X**2, np.full(5, 2)], axis=1)  # the last does not vary
#: A metric, predictions and labels, and the score by hand.
VALUES: list[tuple[str, Any, Any, float]] = [
    ("mse", SOME, OF, 20 / 3), ("rmse", SOME, OF, math.sqrt(20 / 3)), ("mae", SOME, OF, 6 / 3),
    ("mape", SOME, OF, 100 * (0 + 0.5 + 2) / 3), ("r", SOME, OF, np.corrcoef(SOME, OF)[0, 1]),
    ("mse_ci95", SOME, OF, 1.96 * np.std([0, 4, 16], ddof=1) / math.sqrt(3)),
    ("rmse", [[1, 0], [3, 4]], [[0, 0], [1, 8]], math.sqrt((1 + 0 + 4 + 16) / 4)),  # pooled over labels
    ("mape", [1, 5, -1], [2, 0, -4], 100 * (0.5 + 0.75) / 2),  # without the label that is 0
    ("r", [10, 13, 19, 31], [1, 2, 4, 8], 1), ("r", [-1, -2, -4, -8], [1, 2, 4, 8], -1),
    ("r", [*range(7)], [0.1] * 7, math.nan), ("r", [0.1] * 7, [*range(7)], 0),  # 0.1 is no binary fraction
    ("r", np.stack([X, -(X**2), X], axis=1), TARGETS, (1 - 1) / 2),
    ("r", np.stack([X, X, X], axis=1), TARGETS, (1 + np.corrcoef(X, X**2)[0, 1]) / 2),
    ("coverage90", [[0, 1]] * 4, [0, 1.6, -1.7, 9], 0.5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "prediction", "target", "expected"), VALUES)
def test_values_by_hand(name: str, prediction: Any, target: Any, expected: float) -> None:
    rows = (torch.as_tensor(of, dtype=torch.float32).reshape(len(of), -1) for of in (prediction, target))
    assert METRICS[name].score(*rows).item() == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_scores_are_computed_in_float64() -> None:
    # In float32 the square of 0.001 against 4096 would be lost.
    target = column(*[4096.0] * 1000)
    prediction = target.clone()
    prediction[0] += 2**-10
    assert mse(prediction, target).dtype == torch.float64
    assert mse(prediction, target).item() == pytest.approx(2**-20 / 1000, rel=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_a_stack_scores_as_its_members_do(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    prediction = torch.randn(3, 11, 2, generator=generator)
    target = torch.randn(3, 11, 2, generator=generator)
    prediction = suited(name, prediction)
    together = METRICS[name].score(prediction, target)
    assert together.shape == (3,)
    alone = torch.stack([METRICS[name].score(p, t) for p, t in zip(prediction, target, strict=True)])
    torch.testing.assert_close(together, alone, rtol=1e-14, atol=0)


@pytest.mark.parametrize(("name", "lower"), [("rmse", True), ("mse", True), ("mape", True), ("r", False)])
def test_better_is_strict_and_nan_never_is(name: str, lower: bool) -> None:
    metric = METRICS[name]
    nan, worst = float("nan"), metric.worst
    value = torch.tensor([1.0, 2.0, 1.0, nan, 1.0, worst])
    than = torch.tensor([2.0, 1.0, 1.0, 1.0, worst, worst])
    assert metric.better(value, than).tolist() == [lower, not lower, False, False, True, False]


def test_evaluate_counts_the_targets_that_mape_skips() -> None:
    prediction, target = column(1, 2, 3), column(0, 2, 0)
    domain = torch.zeros(3, dtype=torch.int64)
    assert evaluate(prediction, target, domain, ("mape",))["mape_skipped"] == 2
    assert "mape_skipped" not in evaluate(prediction, target, domain, ("rmse",))


@pytest.mark.parametrize("name", ["rmse", "r"])
def test_scores_by_name_and_of_the_worst_domain(name: str) -> None:
    rng = np.random.default_rng(0)
    target = torch.from_numpy(rng.normal(size=(3, 30, 1)))
    prediction = target + torch.from_numpy(rng.normal(size=(3, 30, 1)))
    domain = torch.from_numpy(rng.integers(3, size=(3, 30)))
    metric = METRICS[name]
    torch.testing.assert_close(score(name, prediction, target, domain), metric.score(prediction, target))
    value = score(f"worst_{name}", prediction, target, domain)
    assert value.shape == (3,)
    for e in range(3):  # every model of a stack has its own rows, so its own domains
        by_domain = [float(metric.score(prediction[e][domain[e] == d], target[e][domain[e] == d])) for d in range(3)]
        assert value[e].item() == pytest.approx(max(by_domain) if metric.lower_is_better else min(by_domain))
        reported = evaluate(prediction[e], target[e], domain[e], (), (name,))
        assert reported[f"mean_{name}"] == pytest.approx(sum(by_domain) / 3)
        assert score(f"mean_{name}", prediction, target, domain)[e].item() == pytest.approx(sum(by_domain) / 3)
        assert reported[f"worst_{name}"] == pytest.approx(value[e].item())
    assert metric_of(f"worst_{name}") is metric_of(name) is metric
    with pytest.raises(InputError, match=r"metric must be one of mse, .*coverage90, got 'worst_rsme'"):
        metric_of("worst_rsme")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", METRICS)
def test_predictions_that_are_not_finite_make_every_metric_nan(name: str, bad: float) -> None:
    """A diverged model once had R = 0, which is better than a negative one."""
    target = torch.arange(8.0).reshape(4, 2) + 1
    prediction = target.flip(0).clone()
    prediction[1, 0] = bad
    domain, prediction = torch.tensor([0, 0, 1, 1]), suited(name, prediction)
    for score_name in (name, f"worst_{name}", f"mean_{name}"):
        value = score(score_name, prediction, target, domain)
        assert value.isnan()
        for other in (-1.0, 0.0, 1e30):
            assert not METRICS[name].better(value, torch.tensor(other))
    stack = METRICS[name].score(torch.stack([prediction, suited(name, target.flip(0))]), torch.stack([target, target]))
    assert stack.isnan().tolist() == [True, False]


def test_scores_do_not_depend_on_the_order_of_the_rows() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(500, 1, generator=generator) * 1e6
    prediction = target + torch.randn(500, 1, generator=generator)
    order = torch.randperm(500, generator=generator)
    for name, scored in METRICS.items():
        whole = suited(name, prediction)
        assert scored.score(whole, target) == scored.score(whole[order], target[order])


def test_a_metric_is_registered_by_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name may hold another's, and it is reported by every run unless it says that datasets name it."""
    monkeypatch.setattr("cmixup.metrics.METRICS", dict(METRICS))

    @metric("largest error", "label")
    def mse_largest(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (prediction - target).abs().amax(dim=(-2, -1)).double()

    reported = with_everywhere(["r"])
    assert (reported[0], reported[-1], "rmse" in reported) == ("r", "mse_largest", False)
    assert parse_score("worst_mse_largest_20_steps") == ("worst_", "mse_largest", "20_steps")
    assert score("mse_largest", column(1, 5), column(1, 2), torch.zeros(2, dtype=torch.int64)) == 3
    assert metric_of("mse_largest").lower_is_better
    with pytest.raises(InputError, match="got 'nrmse'"):
        parse_score("nrmse")


def normals(n: int = 50, d_y: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Return means and standard deviations side by side, and labels."""
    rng = torch.Generator().manual_seed(0)
    std = 0.2 + torch.rand(n, d_y, generator=rng)
    return torch.cat([torch.randn(n, d_y, generator=rng), std], dim=1), torch.randn(n, d_y, generator=rng)


def test_likelihood_and_crps_are_those_of_their_definitions() -> None:
    both, y = normals()
    mean, std = both.double().chunk(2, dim=1)
    assert nll(both, y).item() == pytest.approx(-torch.distributions.Normal(mean, std).log_prob(y).mean().item())
    grid = torch.linspace(-12, 12, 4801, dtype=torch.float64)
    below = torch.distributions.Normal(mean[..., None], std[..., None]).cdf(grid)
    squares = (below - (grid >= y[..., None]).double()).square().sum(dim=-1) * 0.005  # Gneiting and Raftery's (20)
    assert crps(both, y).item() == pytest.approx(squares.mean().item(), abs=1e-3)


def test_the_factor_on_standard_deviations_is_the_most_likely_one() -> None:
    both, y = normals()
    mean, std = both.double().chunk(2, dim=1)
    best = float(std_factor(both, y))
    at = {c: nll(torch.cat([mean, c * std], dim=1), y).item() for c in (0.99 * best, best, 1.01 * best)}
    assert min(at, key=lambda c: at[c]) == best
    scores = evaluate_normal(both, y, (both, y), "steps")
    assert scores["nll_steps_rescaled"] == at[best]
    assert scores["nll_steps"] == nll(both, y).item()


@pytest.mark.parametrize(("place", "value"), [((1, 1), 0.0), ((1, 1), -1.0), ((1, 0), math.nan), ((1, 1), math.inf)])
def test_distributions_that_are_none_score_nan_and_other_shapes_are_refused(
    place: tuple[int, int], value: float
) -> None:
    both, y = normals(3, 1)
    both[place] = value
    assert all(math.isnan(METRICS[name].score(both, y).item()) for name in ("nll", "crps", "coverage90"))
    with pytest.raises(InputError, match="prediction must hold a mean and a standard deviation for each target"):
        nll(y, y)


def test_labels_with_gaps_count_where_they_are() -> None:
    rng = np.random.default_rng(0)
    prediction, target = rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) * (1, 50)
    target[:8, 0] = np.nan
    known = [~np.isnan(column) for column in target.T]
    columns = [(prediction[k, j], target[k, j]) for j, k in enumerate(known)]
    pair = torch.from_numpy(prediction).float(), torch.from_numpy(target).float()
    scores = evaluate(*pair, torch.zeros(20, dtype=torch.int64), ["mae", "r"])
    apart = np.concatenate([np.abs(f - y) for f, y in columns])
    assert scores["mae"] == pytest.approx(apart.mean(), rel=1e-6)
    assert scores["r"] == pytest.approx(np.mean([np.corrcoef(f, y)[0, 1] for f, y in columns]), rel=1e-5)
