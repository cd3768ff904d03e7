"""GroupDRO."""

import itertools

import pytest
import torch
from torch import Tensor

from cmixup.batch import Batch
from cmixup.methods.base import squared_error
from cmixup.methods.group_dro import GroupDRO
from cmixup.training.trainer import Run, train
from tests.helpers import make_data, make_run, make_stack, settings, train_one


def run_of(method: GroupDRO, n_domains: int = 3, seed: int = 0) -> Run:
    data = make_data(seed, (48, 8, 8))
    data.train.domain.copy_(torch.arange(48) % n_domains * 4 + 1)  # 1, 5, 9
    return make_run(method, seed, data)


def rows(run: Run, index: Tensor) -> Batch:
    split = run.data.train
    return Batch(split.x[index], split.y[index], split.domain[index])


def risks(run: Run, batch: Batch) -> list[float]:
    """The risk on each training domain, 0 where it is absent."""
    assert isinstance(run.method, GroupDRO)
    f, y = run.model(batch.x), batch.y
    each = [batch.domain == d for d in run.data.train.domain.unique()]
    return [squared_error(f[mine], y[mine]).item() if mine.any() else 0.0 for mine in each]


@pytest.mark.parametrize("index", [torch.arange(48), torch.tensor([0, 3, 6, 1, 4])], ids=["all", "one absent"])
def test_weights_and_loss_of_a_step(index: Tensor) -> None:
    method = GroupDRO(0.7)
    run = run_of(method)
    stack, _ = make_stack([run])
    q = torch.full((3,), 1 / 3)
    for _ in range(3):
        batch = rows(run, index)
        r = torch.tensor(risks(run, batch))
        q = q * torch.exp(0.7 * r)
        q = q / q.sum()
        expected = (q * r).sum().item()
        assert method.loss(run.model, batch).item() == pytest.approx(expected, rel=1e-5)
        assert method.step(stack, batch).item() == pytest.approx(expected, rel=1e-5)
        torch.testing.assert_close(method.log_q.exp(), q)


def test_the_domain_with_the_highest_loss_gains_weight_and_absent_ones_keep_their_ratio() -> None:
    method = GroupDRO(0.5)
    run = run_of(method)
    run.data.train.y[run.data.train.domain == 5] += 2  # the second domain
    stack, _ = make_stack([run], lr=1e-6)
    weights = [1 / 3]
    for _ in range(5):
        method.step(stack, rows(run, torch.arange(48)))
        weights.append(method.log_q.exp()[1].item())
    assert all(b > a for a, b in itertools.pairwise(weights))
    ratio = method.log_q[0] - method.log_q[2]
    method.step(stack, rows(run, torch.arange(1, 48, 3)))  # the second alone
    torch.testing.assert_close(method.log_q[0] - method.log_q[2], ratio)


def test_every_model_of_a_stack_has_its_weights() -> None:
    runs = [run_of(GroupDRO(0.5), 3, seed) for seed in range(3)]
    together = train(runs, settings())
    found = [result.diagnostics for result in together]
    assert all(f["n_domains"] == 3 for f in found)
    assert len({f["largest_weight"] for f in found}) == 3
    for seed, ours in enumerate(found):
        alone = train_one(GroupDRO(0.5), seed, runs[seed].data).diagnostics
        assert ours == pytest.approx(alone, rel=1e-5)
        assert 1 / 3 < ours["largest_weight"] < 1
