"""Mixing query with support against slow, direct forms of the definitions."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.methods.maml import MAML, Mixed, adapt
from cmixup.mixing import mix
from cmixup.pairing.support import SupportLabels, SupportUniform
from cmixup.tasks import Episode
from tests.helpers import composed
from tests.methods.episodes import LR, SHOTS, call, loop, make_fitted, make_split, one_batch, with_draws

# ---- MetaMix


@pytest.mark.parametrize("layer", ["input", "encoder", "block1"])
@pytest.mark.parametrize("adapt_encoder", [False, True])
def test_lam_zero_is_maml_and_lam_one_scores_the_support(layer: str, adapt_encoder: bool) -> None:
    run = make_fitted(composed("metamix", adapt_encoder=adapt_encoder, layer=layer))
    plain = make_fitted(MAML(loop(adapt_encoder=adapt_encoder)))
    batch, model = one_batch(run), run.model
    none = with_draws(batch, lam=torch.zeros_like(batch.draws["lam"]))
    torch.testing.assert_close(run.method.loss(model, none), plain.method.loss(model, batch))
    whole = with_draws(batch, lam=torch.ones_like(batch.draws["lam"]))
    on_support = replace(batch, x=batch.x._replace(query=batch.x.support), y=batch.x.labels)
    torch.testing.assert_close(run.method.loss(model, whole), plain.method.loss(model, on_support))


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


@pytest.mark.parametrize("form", [{"quantile": 1.0}, {"form": "exponential", "a": 0.0}])
def test_weights_of_one_are_metamix(form: dict[str, Any]) -> None:
    one, other = make_fitted(composed("local_metamix", **form)), make_fitted(composed("metamix"))
    torch.testing.assert_close(
        one.method.loss(one.model, one_batch(one)), other.method.loss(other.model, one_batch(other))
    )
    assert one.method.diagnostics() == {"kept_fraction": 1.0}


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
    uniform = SupportUniform()
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


def test_draws_follow_the_probabilities() -> None:
    pairing = SupportLabels(2.0)
    split = make_split(1)
    pairing.fit(split)
    rows = np.zeros(20000, dtype=np.int64)
    drawn = pairing.draw(rows, np.random.default_rng(0))
    p = pairing.probabilities(rows[:1])[0]
    counts = np.stack([np.bincount(drawn[:, q], minlength=SHOTS) for q in range(SHOTS)])
    assert (np.abs(counts - 20000 * p) < 5 * np.sqrt(20000 * p * (1 - p)) + 1).all()
