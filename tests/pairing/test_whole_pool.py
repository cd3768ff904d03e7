"""Partners by representations among all rows: P as defined, its age, stacks, labels in the unit of the batch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.batch import Batch, read_rows
from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta, Constant
from cmixup.pairing import whole_pool
from cmixup.pairing.representation import RepresentationDistance
from cmixup.pairing.whole_pool import WholePool
from cmixup.training.trainer import train
from tests.helpers import make_run, make_split, make_training, settings
from tests.pairing.test_distances import Straight, chi_square

N = 12


def pool_batch(rows: np.ndarray, step: int = 0, n: int = N) -> tuple[Batch, Any]:
    split = make_split(n)
    own = read_rows(split, rows)
    level = torch.from_numpy(np.random.default_rng(3).random(len(rows)))
    draws = {"level": level, "row": torch.from_numpy(rows), "step": torch.full((len(rows),), step)}
    return Batch(own.x, own.y, own.domain, draws=draws), split


def fitted(split: Any, **options: Any) -> WholePool:
    pairing = WholePool(**({"bandwidth": 0.8} | options))
    data = RegressionData("data", split, split, split, unit="none")
    make_training([make_run(Mix(pairing, Constant(0.5)), data=data)])
    return pairing


@pytest.mark.parametrize("options", [{}, {"distance": "cosine"}, {"labels": True}, {"bandwidth": ["median", 0.3]}])
def test_partners_follow_the_kernel_over_all_other_rows(options: dict[str, Any]) -> None:
    rows = np.repeat(np.arange(N), 2000)
    batch, split = pool_batch(rows)
    partner = fitted(split, **options).with_partners(Straight(torch.eye(3)), batch).partner
    assert partner is not None
    drawn = (partner.x[:, None] == split.x).all(dim=-1).int().argmax(dim=1).numpy()
    assert not (drawn == rows).any()
    assert torch.equal(partner.y, split.y[torch.from_numpy(drawn)])
    points = torch.cat([split.x, split.y], dim=1).double() if options.get("labels") else split.x.double()
    if options.get("distance") == "cosine":
        d = 1 - torch.cosine_similarity(points[:, None], points, dim=-1)
    else:
        d = (points[:, None] - points).square().sum(dim=-1)
    off = d[~torch.eye(N, dtype=torch.bool)]
    variance = 0.3 * float(off.repeat(2).sort().values[len(off) - 1]) if "bandwidth" in options else 0.8**2
    p = torch.softmax((-d / (2 * variance)).fill_diagonal_(-torch.inf), dim=1).numpy()
    assert max(chi_square(drawn[rows == i], p[i]) for i in range(N)) < 5


def test_representations_are_as_old_as_the_last_encoding() -> None:
    batch, split = pool_batch(np.arange(N))
    pairing, model = fitted(split, every=3), Straight(torch.eye(3))
    pairing.with_partners(model, batch)
    first = pairing.encoded
    with torch.no_grad():
        model.matrix.mul_(2.0)
    for step in (1, 2):
        pairing.with_partners(model, replace(batch, draws={**batch.draws, "step": torch.full((N,), step)}))
        assert pairing.encoded is first
    pairing.with_partners(model, replace(batch, draws={**batch.draws, "step": torch.full((N,), 3)}))
    torch.testing.assert_close(pairing.encoded, 2 * first)


def test_what_does_not_suit_it_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(whole_pool, "MAX_BYTES", N * 3 * 4 - 1)
        with pytest.raises(InputError, match=r"keeps the inputs of all rows, a tensor of .* GiB at most, got 0.0 GiB"):
            WholePool(0.3).fit(make_split(N))
    with pytest.raises(InputError, match="every must be a whole number, 1 or more, got 0"):
        WholePool(0.3, every=0)
    with pytest.raises(InputError, match="needs 2 training rows or more, got 1"):
        WholePool(0.3).fit(make_split(1))


@pytest.mark.parametrize("pairing", [RepresentationDistance, WholePool])
def test_a_stack_over_bandwidths_is_refused_where_the_stack_draws(pairing: Any) -> None:
    runs = [make_run(Mix(pairing(bandwidth), Beta(2.0)), seed) for seed, bandwidth in enumerate((0.1, 9.0))]
    with pytest.raises(InputError, match=r"need method\.pairing\.bandwidth alike, got 0.1 and 9.0"):
        train(runs, settings(epochs=1))
