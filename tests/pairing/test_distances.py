"""Pairings by the distance of inputs and of representations, among candidates or all rows."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.backbone import Backbone
from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta, Constant
from cmixup.pairing import inputs, whole_pool
from cmixup.pairing.inputs import InputDistance
from cmixup.pairing.representation import RepresentationDistance, encode
from cmixup.pairing.whole_pool import WholePool
from cmixup.training.batch import Batch, EpochBatches, shuffled
from tests.helpers import (
    assert_states_equal,
    composed,
    epoch_batches,
    make_data,
    make_run,
    make_split,
    make_stack,
    make_training,
    refuses,
)
from tests.sampling.goodness import p_value


def probabilities(pairing: InputDistance) -> np.ndarray:
    """P, (N, N)."""
    return np.diff(pairing._cumulative, axis=1, prepend=0.0) / pairing._cumulative[:, -1:]


def fitted(n: int = 40, d_y: int = 1, **options: Any) -> tuple[InputDistance, Split]:
    split = make_split(n, d_y=d_y)
    pairing = InputDistance(**({"bandwidth": 0.3} | options))
    pairing.fit(split)
    return pairing, split


@pytest.mark.parametrize("labels", [False, True])
def test_p_is_the_kernel_over_other_rows(labels: bool) -> None:
    pairing, split = fitted(labels=labels, d_y=2)
    points = (torch.cat([split.x, split.y], dim=1) if labels else split.x).double()
    weight = torch.exp(-(points[:, None] - points).square().sum(dim=-1) / (2 * 0.3**2)).fill_diagonal_(0.0)
    np.testing.assert_allclose(probabilities(pairing), weight / weight.sum(dim=1, keepdim=True), atol=1e-9)


@pytest.mark.parametrize("width", [2, 200])
def test_a_fraction_is_that_of_other_rows(width: int) -> None:
    split = Split(torch.randn(300, width), torch.zeros(300, 1), torch.zeros(300, dtype=torch.int64))
    pairing = InputDistance(("fraction", 0.2))
    pairing.fit(split)
    assert np.median(1 / np.square(probabilities(pairing)).sum(axis=1)) == pytest.approx(60, rel=0.02)


def test_a_row_is_never_its_own_partner_and_draws_follow_p() -> None:
    pairing, _ = fitted(12)
    index = np.repeat(np.arange(12), 4000)
    drawn = pairing.draw(EpochBatches(index, np.array([len(index)])), np.random.default_rng(0))
    assert not (drawn == index).any()
    p = probabilities(pairing)
    assert min(p_value(drawn[index == i], p[i]) for i in range(12)) > 1e-5


def test_more_rows_than_a_table_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_TABLE_BYTES", 8 * 39**2)
    with pytest.raises(InputError, match=r"needs 2 to 39 training rows \(a table of all pairs\), got 40"):
        fitted(40)


class Straight(Backbone):
    """A model whose representation is a linear map of its input."""

    def __init__(self, matrix: Tensor):
        super().__init__()
        self.matrix = nn.Parameter(matrix)

    def features(self, x: Tensor) -> Tensor:
        return x @ self.matrix

    def head(self, features: Tensor) -> Tensor:
        return features.sum(dim=-1, keepdim=True)


def batch_of(n: int = 6, candidates: int = 24, d: int = 3) -> Batch:
    batch_rows, pool = make_split(n, d, seed=1), make_split(candidates, d, seed=2)
    draws = {"level": torch.from_numpy(np.random.default_rng(0).random(n))}
    return Batch(
        batch_rows.x, batch_rows.y, batch_rows.domain, None, draws, candidates=Batch(pool.x, pool.y, pool.domain)
    )


def p_of(pairing: RepresentationDistance, matrix: Tensor, batch: Batch | None = None) -> np.ndarray:
    weight = pairing.weights(Straight(matrix), batch or batch_of())
    return (weight / weight.sum(dim=-1, keepdim=True)).numpy()


def test_p_over_candidates_is_the_kernel() -> None:
    batch = batch_of()
    assert batch.candidates is not None
    h, g = batch.x.double(), batch.candidates.x.double()
    squared = (h[:, None] - g).square().sum(dim=-1)
    euclidean = torch.softmax(-squared / (2 * 0.4**2), dim=1)
    np.testing.assert_allclose(p_of(RepresentationDistance(0.4), torch.eye(3)), euclidean, rtol=1e-4)
    cosine = 1 - torch.cosine_similarity(h[:, None], g, dim=-1)
    np.testing.assert_allclose(
        p_of(RepresentationDistance(0.4, "cosine"), torch.eye(3)), torch.softmax(-cosine / (2 * 0.4**2), 1), rtol=1e-4
    )
    both = squared + (batch.y.double()[:, None] - batch.candidates.y.double()).square().sum(dim=-1)
    variance = 0.3 * float(both.flatten().median())
    np.testing.assert_allclose(
        p_of(RepresentationDistance(["median", 0.3], labels=True), torch.eye(3)),
        torch.softmax(-both / (2 * variance), 1),
        rtol=1e-4,
    )


def test_a_bandwidth_whose_square_is_infinite_is_infinite() -> None:
    inputs, representations = (
        [probabilities(fitted(bandwidth=s)[0]) for s in (1e200, np.inf)],
        [p_of(RepresentationDistance(s), torch.eye(3)) for s in (1e200, np.inf)],
    )
    np.testing.assert_array_equal(*inputs)
    np.testing.assert_array_equal(*representations)


class StraightStack(Straight):
    stackable: ClassVar[bool] = True


@pytest.mark.parametrize("seeds", [(3,), (3, 5)])
@pytest.mark.parametrize("kind", [RepresentationDistance, WholePool])
def test_with_labels_scaled_for_the_loss_representations_and_inputs_compare_the_same_labels(
    kind: Any, seeds: tuple[int, ...]
) -> None:
    """Of `cmixup_hy` and `cmixup_xy`: d([h; y]) is d([x; y]) where h is x, with y in its own unit."""
    data = [make_data(seed) for seed in seeds]
    data = [replace(some, train=replace(some.train, y=7 * some.train.y + 100)) for some in data]
    method = [Mix(kind(2.0, labels=True), Beta(2.0)) for _ in seeds]
    runs = [make_run(*parts, lambda *_: StraightStack(torch.eye(3))) for parts in zip(method, seeds, data, strict=True)]
    training = make_training(runs, label_scaling="standard")
    orders = [run.method.order(run.data.train, 16, run.streams, drop_last=False) for run in runs]
    draws = [run.method.draw(order, run.streams) for run, order in zip(runs, orders, strict=True)]
    batch, model, pairing = next(training.batches(orders, draws)), training.stack.model, training.method.pairing
    assert batch.y.abs().max() < 10 < batch.labels.min()
    partner = pairing.with_partners(model, batch).partner
    torch.testing.assert_close(partner.y, training.stack.labels.scale(partner.labels))
    for e, run in enumerate(runs):
        train_split = run.data.train
        if kind is WholePool:
            points = pairing.encoded.reshape(len(seeds), 48, 4)[e]
            torch.testing.assert_close(points, torch.cat([train_split.x, train_split.y], dim=1))
            continue
        by_inputs = InputDistance(2.0, labels=True)
        by_inputs.fit(train_split)
        p = probabilities(by_inputs)[orders[e].index[:16]][:, draws[e]["candidates"][:16].ravel()]
        weight = pairing.weights(model, batch).reshape(len(seeds), 16, -1)[e].numpy()
        shares = [of / of.sum(axis=1, keepdims=True) for of in (weight, p)]
        np.testing.assert_allclose(*shares, rtol=1e-3)


def test_candidates_are_different_rows_from_outside_the_batch_drawn_with_the_epoch() -> None:
    pairing = RepresentationDistance(0.3, factor=2)
    pairing.fit(make_split(48))
    order = shuffled(48, 16, np.random.default_rng(0), drop_last=False)
    drawn = pairing.named_draws(order, np.random.default_rng(1))
    assert drawn["candidates"].shape == (48, 2)
    for rows, actual in zip(order.batches(), np.split(drawn["candidates"], 3), strict=True):
        assert not set(rows) & set(actual.flat)
        assert len(set(actual.flat)) == 32
    again = pairing.named_draws(order, np.random.default_rng(1))
    assert all(np.array_equal(drawn[name], again[name]) for name in drawn)


@pytest.mark.parametrize(("n", "batch"), [(20, 16), (16, 16)])
def test_few_rows_outside_the_batch_are_drawn_again(n: int, batch: int) -> None:
    pairing = RepresentationDistance(0.3, factor=40)  # so many draws that every row comes
    pairing.fit(make_split(n))
    order = shuffled(n, batch, np.random.default_rng(0), drop_last=True)
    actual = set(pairing.named_draws(order, np.random.default_rng(1))["candidates"].flat)
    assert actual == (set(range(n)) - set(order.index) or set(range(n)))


class Noisy(Backbone):
    """A model with dropout and BatchNorm before its representation."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.BatchNorm1d(16), nn.Dropout(0.5))

    def features(self, x: Tensor) -> Tensor:
        return self.net(x)


def test_encoding_has_no_dropout_and_leaves_the_model_as_it_was() -> None:
    model, x = Noisy(), torch.rand(10, 3)
    model.train()
    before, state = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    one, other = encode(model, x), encode(model, x)
    assert torch.equal(one, other)
    assert not one.requires_grad
    assert all(module.training for module in model.modules())
    assert_states_equal(before, model.state_dict())
    assert torch.equal(state, torch.get_rng_state())
    model.eval()
    encode(model, x)
    assert not model.training


def mix(**options: Any) -> Mix:
    return Mix(RepresentationDistance(**({"bandwidth": ["median", 0.1]} | options)), Beta(2.0), layer="hidden")


def test_the_step_uses_the_weights_of_the_step() -> None:
    run = make_run(mix(factor=2))
    _, batches = epoch_batches(run)
    stack, method = make_stack([make_run(mix(factor=2))])
    before = method.pairing.with_partners(stack.model, batches[0]).partner
    with torch.no_grad():
        for parameter in stack.model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    after = method.pairing.with_partners(stack.model, batches[0]).partner
    assert not torch.equal(before.x, after.x)


def test_a_model_without_hidden_states_and_local_mixup_are_refused_in_one_line() -> None:
    plain = make_run(Mix(RepresentationDistance(0.3), Beta(2.0)), model=nn.Linear)
    with pytest.raises(InputError, match="needs hidden representations, model Linear has none"):
        plain.method.fit(plain.data, plain.model, plain.streams)
    run = make_run(composed("local_mixup", pairing="representation"))
    with pytest.raises(InputError, match="pairing must give partners before the step for Local Mixup"):
        run.method.fit(run.data, run.model, run.streams)


test_bad_options_are_refused = refuses(
    [
        ({"bandwidth": "auto"}, 'bandwidth must be a number or \\("median", c\\) for representations'),
        ({"bandwidth": ["median", 0]}, "c must be a finite number above 0, got 0"),
        ({"bandwidth": 1.0, "distance": "manhattan"}, "distance must be one of euclidean, cosine"),
        ({"bandwidth": 1.0, "every": 0}, "every must be a whole number, 1 or more, got 0"),
    ],
    lambda options: WholePool(**options),
)


# ---- Partners by representations among all rows: P as defined, its age, stacks, labels in the unit of the batch


N = 12


def pool_batch(rows: np.ndarray, step: int = 0, n: int = N) -> tuple[Batch, Any]:
    split = make_split(n)
    level = torch.from_numpy(np.random.default_rng(3).random(len(rows)))
    draws = {"level": level, "row": torch.from_numpy(rows), "step": torch.full((len(rows),), step)}
    return Batch(split.x[rows], split.y[rows], split.domain[rows], draws=draws), split


def fitted_whole_pool(split: Any, **options: Any) -> WholePool:
    pairing = WholePool(**({"bandwidth": 0.8} | options))
    data = RegressionData("data", split, split, split, unit="none")
    make_training([make_run(Mix(pairing, Constant(0.5)), data=data)])
    return pairing


@pytest.mark.parametrize("options", [{}, {"distance": "cosine"}, {"labels": True}, {"bandwidth": ["median", 0.3]}])
def test_partners_follow_the_kernel_over_all_other_rows(options: dict[str, Any]) -> None:
    rows = np.repeat(np.arange(N), 2000)
    batch, split = pool_batch(rows)
    partner = fitted_whole_pool(split, **options).with_partners(Straight(torch.eye(3)), batch).partner
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
    assert min(p_value(drawn[rows == i], p[i]) or 1.0 for i in range(N)) > 1e-5


def test_labels_are_compared_in_32_bits_beside_steps_in_bfloat16() -> None:
    near, (rows, split), matrix = batch_of(), pool_batch(np.arange(N)), torch.zeros(3, 3)
    assert near.candidates is not None
    far = replace(near, labels=near.y + 100, candidates=replace(near.candidates, labels=near.candidates.y + 100))
    pairing, whole = RepresentationDistance(0.4, labels=True), fitted_whole_pool(split, labels=True)
    with torch.autocast("cpu", torch.bfloat16):
        p = p_of(pairing, matrix, far)
        whole.with_partners(Straight(matrix), rows)
    np.testing.assert_allclose(p, p_of(pairing, matrix, far), rtol=1e-6)
    assert torch.equal(whole.encoded[:, 3:], split.y)


def test_representations_are_as_old_as_the_last_encoding() -> None:
    batch, split = pool_batch(np.arange(N))
    pairing, model = fitted_whole_pool(split, every=3), Straight(torch.eye(3))
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
    with pytest.raises(InputError, match="needs 2 training rows or more, got 1"):
        WholePool(0.3).fit(make_split(1))
