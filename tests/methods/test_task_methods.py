"""Methods on tasks against slow, direct forms of their definitions: MAML and what builds on it, MetaMix."""

import copy
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.data import Episode
from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.methods.maml import MAML, InnerLoop, Mixed, adapt
from cmixup.methods.meta_aug import MetaAug
from cmixup.methods.mr_maml import MRMAML, gaussian_divergence
from cmixup.mixing.linear import mix
from cmixup.pairing.support import SupportLabels
from cmixup.training.model_stack import ModelStack
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import train
from cmixup.training.training import Training
from tests.helpers import assert_states_equal, composed, make_data, refuses
from tests.helpers import make_run as plain_run
from tests.methods.episodes import (
    LR,
    METHODS,
    SHOTS,
    Small,
    call,
    loop,
    make_fitted,
    make_run,
    make_split,
    one_batch,
    with_draws,
)


def slow_query_loss(model: Small, x: Episode, y: Tensor, steps: int = 2) -> Tensor:
    """MAML task by task, with plain autograd and no torch.func."""
    losses = []
    for k in range(len(y)):
        net = model.decoder
        weights = dict(net.named_parameters())
        support, query = model.encoder(x.support[k]), model.encoder(x.query[k])
        for _ in range(steps):
            error = (call(net, weights, support) - x.labels[k]).square().mean()
            slopes = torch.autograd.grad(error, list(weights.values()), create_graph=True)
            weights = {n: w - LR * g for (n, w), g in zip(weights.items(), slopes, strict=True)}
        losses.append((call(net, weights, query) - y[k]).square().mean())
    return torch.stack(losses).mean()


def gradients(model: nn.Module, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, retain_graph=True))


# ---- MAML


def test_loss_and_meta_gradient_equal_a_loop_over_tasks() -> None:
    run = make_fitted(MAML(loop()))
    batch, model = one_batch(run), run.model
    ours, slow = run.method.loss(model, batch), slow_query_loss(model, batch.x, batch.y)
    torch.testing.assert_close(ours, slow)
    for mine, theirs in zip(gradients(model, ours), gradients(model, slow), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_the_inner_loop_changes_no_weights_of_the_model(name: str) -> None:
    run = make_fitted(METHODS[name]())
    before = copy.deepcopy(run.model.state_dict())
    batch = one_batch(run)
    run.method.loss(run.model, batch).backward()
    run.model.eval()
    with torch.no_grad():
        run.method.predictors()[""](run.model, batch.x)
    assert_states_equal(before, run.model.state_dict())


@pytest.mark.parametrize("name", METHODS)
def test_scores_after_more_steps_stand_beside_the_others(name: str) -> None:
    run = make_run(METHODS[name]())
    (result,) = train([run], TrainSettings(1, 3, 0.01))
    more = run.method.inner.report_steps
    assert set(result.scores["test"]) == {"mse", "mse_ci95", f"mse_{more}_steps", f"mse_ci95_{more}_steps"}
    run.model.eval()
    split = run.data.test
    expected = (run.method.adapted(run.model, split.x[torch.arange(4)], more) - split.y).square().mean()
    assert result.scores["test"][f"mse_{more}_steps"] == pytest.approx(expected.item(), rel=1e-5)
    assert result.scores["test"]["mse"] != result.scores["test"][f"mse_{more}_steps"]


# ---- MR-MAML


def test_without_penalty_and_spread_it_is_maml() -> None:
    run, plain = make_fitted(MRMAML(loop(), beta=0.0)), make_fitted(MAML(loop(2)))
    for rho in run.model.rho:
        nn.init.constant_(rho, -60.0)
    batch = one_batch(plain)
    ours, theirs = (m.method.loss(m.model.train(), batch) for m in (run, plain))
    torch.testing.assert_close(ours, theirs)
    names = [n for n, _ in plain.model.named_parameters()]
    slopes = dict(zip((n for n, _ in run.model.named_parameters()), gradients(run.model, ours), strict=True))
    for name, expected in zip(names, gradients(plain.model, theirs), strict=True):
        torch.testing.assert_close(slopes[name], expected)


def test_the_divergence_is_zero_at_the_prior_and_positive_elsewhere() -> None:
    for prior in (1.0, 0.1):
        assert float(gaussian_divergence(torch.zeros(7), torch.full((7,), prior), prior)) == pytest.approx(0, abs=1e-6)
    for mean, scale in ((0.0, 0.3), (0.5, 1.0), (-2.0, 3.0), (0.0, 1e-8)):
        ours = float(gaussian_divergence(torch.full((3,), mean), torch.full((3,), scale), 1.0))
        q, p = torch.distributions.Normal(mean, scale), torch.distributions.Normal(0.0, 1.0)
        assert ours > 0
        assert ours == pytest.approx(3 * float(torch.distributions.kl_divergence(q, p)), rel=1e-5)


def test_the_penalty_trains_the_weights_of_the_encoder_alone() -> None:
    """Biases of the original's layers are not drawn and have no prior."""
    slopes = []
    for beta in (0.0, 0.5):
        run = make_fitted(MRMAML(loop(), beta=beta))
        torch.manual_seed(3)
        loss = run.method.loss(run.model.train(), one_batch(run))
        names = [n for n, _ in run.model.named_parameters()]
        slopes.append(dict(zip(names, gradients(run.model, loss), strict=True)))
    for name in slopes[0]:
        same = torch.equal(slopes[0][name], slopes[1][name])
        assert same == (name.startswith("decoder") or name.endswith("bias")), name
    assert len(run.model.rho) == sum(name.endswith("weight") for name, _ in run.model.encoder.named_parameters())


def test_weights_are_drawn_in_training_and_the_means_predict() -> None:
    run = make_fitted(MRMAML(loop(2)))
    for rho in run.model.rho:
        nn.init.constant_(rho, 0.0)
    batch = one_batch(run)
    run.model.train()
    assert run.method.loss(run.model, batch) != run.method.loss(run.model, batch)
    run.model.eval()
    plain = make_fitted(MAML(loop(2)))
    torch.testing.assert_close(
        run.method.predictors()[""](run.model, batch.x), plain.method.predictors()[""](plain.model, batch.x)
    )


# ---- Meta-Aug


def test_support_and_query_shift_alike_and_images_stay() -> None:
    run, plain = make_fitted(MetaAug(loop(2))), make_fitted(MAML(loop(2)))
    batch = with_draws(one_batch(plain), offset=torch.tensor([0.0, 2.5, 7.5]))
    moved = torch.remainder(batch.x.labels + torch.tensor([[0.0], [2.5], [7.5]]), 10)
    by_hand = replace(batch, x=batch.x._replace(labels=moved),
                      y=torch.remainder(batch.y + torch.tensor([[0.0], [2.5], [7.5]]), 10))  # fmt: skip
    torch.testing.assert_close(run.method.loss(run.model, batch), plain.method.loss(plain.model, by_hand))


def test_offsets_are_in_label_units_however_the_loss_scales_labels() -> None:
    method, seen = MetaAug(loop(2)), list[Tensor]()
    run = make_fitted(method)
    training = Training([run], TrainSettings(1, 3, 0.01, label_scaling="standard"), torch.device("cpu"))
    method.begin(training)
    units, batch = training.stack.labels, with_draws(one_batch(run), offset=torch.tensor([0.0, 2.5, 7.5]))
    method.shift = lambda labels, _: seen.append(labels) or labels
    scaled = replace(batch, x=batch.x._replace(labels=units.scale(batch.x.labels)), y=units.scale(batch.y))
    loss, plain = (one.loss(run.model, scaled) for one in (method, MAML(loop(2))))
    torch.testing.assert_close(loss, plain)
    for ours, given in zip(seen, (batch.x.labels, batch.y), strict=True):
        torch.testing.assert_close(ours, given)


def test_offsets_are_equally_frequent_and_one_offset_is_maml() -> None:
    run = make_fitted(MetaAug(loop(), n_offsets=4), n=4000)
    order = run.method.order(run.data.train, 10, run.streams, drop_last=False)
    values, counts = np.unique(run.method.draw(order, run.streams)["offset"], return_counts=True)
    assert values.tolist() == [0.0, 2.5, 5.0, 7.5]
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(4000 * 0.25 * 0.75)
    one, plain = make_fitted(MetaAug(loop(), n_offsets=1)), make_fitted(MAML(loop(2)))
    torch.testing.assert_close(
        one.method.loss(one.model, one_batch(one)), plain.method.loss(plain.model, one_batch(plain))
    )


# ---- what is refused


def test_tasks_and_rows_do_not_mix() -> None:
    with pytest.raises(InputError, match=r"method MAML needs a dataset of tasks .*got data"):
        train([plain_run(MAML(loop()), data=make_data())], TrainSettings(1, 3, 0.01))
    for method in (ERM(), composed("mixup")):
        with pytest.raises(InputError, match="needs a dataset of plain rows, got poses"):
            train([make_run(method)], TrainSettings(1, 3, 0.01))


def test_a_model_without_encoder_and_decoder_is_refused() -> None:
    run = make_fitted(MAML(loop()), model=nn.Identity)
    with pytest.raises(InputError, match="model must have an encoder and a decoder to adapt, got Identity"):
        run.method.loss(run.model, one_batch(run))
    with pytest.raises(InputError, match="got Identity"):
        make_fitted(MRMAML(loop()), model=nn.Identity)


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: InnerLoop(-0.1), "inner_lr must be a finite number, 0 or more, got -0.1"),
        (lambda: InnerLoop(0.1, 5, 1.5), "report_steps must be a whole number, 0 or more, got 1.5"),
        (lambda: MRMAML(loop(), prior=0), "prior must be a finite number above 0"),
        (lambda: composed("metamix", lam_per="batch"), "lam_per must be one of query, task, got 'batch'"),
        (lambda: make_fitted(composed("k_metamix", k=4)), "k must divide the 6 support examples, got 4"),
    ]
)


# ---- MetaMix


@pytest.mark.parametrize("layer", ["input", "encoder", "block1"])
def test_the_query_is_mixed_at_the_layer_with_adapted_weights(layer: str) -> None:
    run = make_fitted(composed("metamix", layer=layer))
    batch, model = one_batch(run), run.model
    pair, lam = batch.draws["pair"], batch.draws["lam"]
    losses = []
    for k in range(3):
        x = Episode(*(part[k] for part in batch.x))
        weights = adapt(model.decoder, "encoder", dict(model.decoder.named_parameters()), model.encoder(x.support),
                        x.labels, lr=LR, steps=2)  # fmt: skip
        partner, query = x.support[pair[k]], x.query
        code = model.encoder(mix(partner, query, lam[k])) if layer == "input" else None
        if layer == "encoder":
            code = mix(model.encoder(partner), model.encoder(query), lam[k])
        if code is not None:
            prediction = call(model.decoder, weights, code)
        else:
            states = [torch.tanh(model.encoder(v) @ weights["hidden.weight"].T + weights["hidden.bias"])
                      for v in (partner, query)]  # fmt: skip
            prediction = (mix(*states, lam[k]) @ weights["out.weight"].T + weights["out.bias"])[:, 0]
        losses.append((prediction - mix(x.labels[pair[k]], batch.y[k], lam[k])).square().mean())
    torch.testing.assert_close(run.method.loss(model, batch), torch.stack(losses).mean())


def test_pairs_permute_the_support_and_lambda_is_per_query_or_task() -> None:
    for lam_per, different in (("query", True), ("task", False)):
        run = make_fitted(composed("metamix", lam_per=lam_per), n=20)
        order = run.method.order(run.data.train, 4, run.streams, drop_last=False)
        drawn = run.method.draw(order, run.streams)
        assert (np.sort(drawn["pair"], axis=1) == np.arange(SHOTS)).all()
        assert drawn["lam"].shape == (20, SHOTS)
        assert ((np.ptp(drawn["lam"], axis=1) > 0) == different).all()
        assert len(np.unique(drawn["lam"][:, 0])) == 20


def test_random_layers_are_one_for_each_batch_and_all_occur() -> None:
    run = make_fitted(composed("metamix", layer="random"), n=200)
    assert run.method.layers == ("encoder", "block1")
    order = run.method.order(run.data.train, 4, run.streams, drop_last=False)
    layers = run.method.draw(order, run.streams)["layer"].reshape(-1, 4)
    assert (np.ptp(layers, axis=1) == 0).all()
    assert set(layers[:, 0].tolist()) == {0, 1}


# ---- k-MetaMix and Local MetaMix


def test_blocks_of_one_are_metamix() -> None:
    one = make_fitted(composed("k_metamix", lam_per="query", k=1))
    other = make_fitted(composed("metamix"))
    a, b = (m.method.loss(m.model, one_batch(m)) for m in (one, other))
    assert torch.equal(a, b)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_blocks_are_matched_at_the_least_cost(k: int) -> None:
    run, plain = make_fitted(composed("k_metamix", k=k), n=5), make_fitted(composed("metamix"), n=5)
    rows = np.arange(5)
    pair = run.method.pairing.draw(rows, np.random.default_rng(0))
    random = plain.method.pairing.draw(rows, np.random.default_rng(0))
    x = run.data.train.x[torch.arange(5)]
    for row in range(5):
        for start in range(0, SHOTS, k):
            block = slice(start, start + k)
            assert sorted(pair[row, block]) == sorted(random[row, block])

            def cost(chosen: tuple[int, ...], row: int = row, start: int = start) -> float:
                gap = x.support[row, list(chosen)] - x.query[row, start : start + len(chosen)]
                return float(gap.double().square().sum())

            best = min(cost(p) for p in permutations(random[row, block].tolist()))
            assert cost(tuple(pair[row, block].tolist())) == pytest.approx(best)


def test_a_step_without_any_weight_leaves_the_weights() -> None:
    run = make_fitted(composed("local_metamix"))
    stack, batch = ModelStack([run.model], torch.device("cpu"), "adam", 0.01), one_batch(run)
    run.method.step(stack, with_draws(batch, weight=torch.ones_like(batch.draws["weight"])))  # moments are no longer 0
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    assert run.method.step(stack, with_draws(batch, weight=torch.zeros_like(batch.draws["weight"]))) == 0
    assert_states_equal(run.model.state_dict(), before)


@pytest.mark.parametrize("form", [{"quantile": 1.0}, {"form": "exponential", "a": 0.0}])
def test_weights_of_one_are_metamix(form: dict[str, Any]) -> None:
    one, other = make_fitted(composed("local_metamix", **form)), make_fitted(composed("metamix"))
    torch.testing.assert_close(
        one.method.loss(one.model, one_batch(one)), other.method.loss(other.model, one_batch(other))
    )


def test_the_loss_is_weighted_inside_each_task() -> None:
    run, plain = make_fitted(composed("local_metamix")), make_fitted(composed("metamix"))
    batch, model = one_batch(plain), run.model
    weight = torch.zeros(3, SHOTS)
    weight[0, 2], weight[1, 0], weight[1, 1] = 1.0, 0.5, 0.5
    draws = batch.draws
    prediction = run.method.adapted(model, batch.x, 2, Mixed(draws["pair"], draws["lam"], "input"))
    error = (prediction - mix(batch.x.labels.gather(1, draws["pair"]), batch.y, draws["lam"])).square()
    expected = (error[0, 2] + (error[1, 0] + error[1, 1]) / 2 + 0) / 3  # nothing survives of the third task
    torch.testing.assert_close(run.method.loss(model, with_draws(batch, weight=weight)), expected)


def test_weights_follow_the_distance_of_the_images() -> None:
    run = make_fitted(composed("local_metamix"), n=30)
    order = run.method.order(run.data.train, 5, run.streams, drop_last=False)
    drawn = run.method.draw(order, run.streams)
    x = run.data.train.x[torch.from_numpy(order.index)]
    rows = torch.arange(30)[:, None]
    partner = x.support[rows, torch.from_numpy(drawn["pair"])]
    apart = (partner - x.query).double().flatten(2).square().sum(dim=2).sqrt().numpy()
    assert (drawn["weight"] == (apart <= run.method.form.eps)).all()
    assert 0.1 < drawn["weight"].mean() < 0.4  # a quarter of all pairs


# ---- C-Mixup


def test_probabilities_are_the_kernel_over_the_support() -> None:
    pairing = SupportLabels(1.5)
    split = make_split(5)
    pairing.fit(split)
    p = pairing.probabilities(np.arange(5))
    assert p.shape == (5, SHOTS, SHOTS)
    np.testing.assert_allclose(p.sum(axis=2), 1)
    x, y = split.x[torch.arange(5)], split.y
    weight = torch.exp(-((y[:, :, None] - x.labels[:, None, :]).double() ** 2) / (2 * 1.5**2)).numpy()
    np.testing.assert_allclose(p, weight / weight.sum(axis=2, keepdims=True), rtol=1e-5)


def test_an_infinite_bandwidth_is_metamix_with_uniform_partners() -> None:
    one = make_fitted(composed("cmixup_meta", bandwidth=float("inf")))
    other = make_fitted(composed("metamix", pairing="support_uniform"))
    assert torch.equal(one.method.loss(one.model, one_batch(one)), other.method.loss(other.model, one_batch(other)))
    uniform = SupportLabels(1e200)  # whose square is infinite
    uniform.fit(make_split(3000))
    drawn = uniform.draw(np.arange(3000), np.random.default_rng(0))
    assert np.abs(np.bincount(drawn.ravel(), minlength=SHOTS) - 3000).max() < 5 * np.sqrt(3000)
    same = float((drawn[:, :1] == drawn[:, 1:]).mean())  # each query of a task draws for itself
    assert same == pytest.approx(1 / SHOTS, abs=5 * np.sqrt(1 / SHOTS / (3000 * (SHOTS - 1))))


def test_a_bandwidth_of_zero_takes_the_nearest_label() -> None:
    for bandwidth in (0.0, 1e-4):
        pairing = SupportLabels(bandwidth)
        split = make_split(5)
        pairing.fit(split)
        drawn = pairing.draw(np.arange(5), np.random.default_rng(0))
        x = split.x[torch.arange(5)]
        nearest = (split.y[:, :, None] - x.labels[:, None, :]).abs().argmin(dim=2)
        assert drawn.tolist() == nearest.tolist()
