"""PuzzleMix: saliency, the energy that masks minimise and its minimum cut, transport, and label weights."""

import copy
import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta, Constant
from cmixup.mixing.linear import mix
from cmixup.mixing.puzzlemix import PuzzleMix, min_cut, move, saliency
from cmixup.networks.fcn3 import FCN3
from cmixup.pairing.uniform import Permutation, Uniform
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.method import squared_error
from cmixup.training.trainer import Run, train
from tests.helpers import (
    assert_same,
    assert_states_close,
    assert_states_equal,
    checkpoints,
    epoch_batches,
    fitted,
    interrupted,
    make_data,
    make_run,
    make_stack,
    refuses,
    settings,
)
from tests.mixing.images import ConvNet, picture_data, pictures

SIZE = (8, 12)


def a_pair(n: int, channels: int = 3) -> Tensor:
    return torch.stack([pictures(n, channels), pictures(n, channels, seed=1)])


def drawn(n: int, part: float = 0.9, seed: int = 0) -> dict[str, Tensor]:
    """Draws for n pairs, all with the last block count where `part` is large."""
    rng = np.random.default_rng(seed)
    maps = torch.from_numpy(rng.random((2, n, *SIZE), dtype=np.float32) ** 4)
    lam = torch.from_numpy(rng.random(n, dtype=np.float32))
    return {"lam": lam, "blocks": torch.full((n,), part), "saliency": maps[0], "partner_saliency": maps[1]}


@pytest.mark.parametrize("channels", [1, 3, 8])
@pytest.mark.parametrize(("levels", "n"), [(2, 2), (3, 4), (5, 4)])
def test_masks_have_m_levels_and_weigh_both_images_by_one_in_all(levels: int, n: int, channels: int) -> None:
    pair, draws = a_pair(60, channels), drawn(60)
    mixing = PuzzleMix(levels, transport=False)
    maps = torch.stack([draws["saliency"], draws["partner_saliency"]])
    mixed, mask = mixing.puzzle(pair, maps, draws["lam"], n)
    assert mask.shape == (60, n, n)
    assert set((mask * (levels - 1)).flatten().tolist()) == set(range(levels))
    first = mask.repeat_interleave(SIZE[0] // n, 1).repeat_interleave(SIZE[1] // n, 2)[:, None]
    torch.testing.assert_close(mixed, first * pair[0] + (1 - first) * pair[1])
    out, weight = mixing(pair[0], pair[1], draws | {"blocks": torch.full((60,), 0.6 if n == 4 else 0.2)})
    assert torch.equal(out, mixed)
    torch.testing.assert_close(weight, first.mean(dim=(1, 2, 3)))
    assert (weight - draws["lam"]).abs().mean() < 0.2


def slow_energy(z: np.ndarray, pair: np.ndarray, salient: np.ndarray, lam: float, mixing: PuzzleMix) -> float:
    """The energy of weights `(n, n)` of the first image, from its definition and with the borders of what is taken."""
    n, m = z.shape[0], mixing.levels
    high, wide = pair.shape[-2] // n, pair.shape[-1] // n
    smooth = mixing.beta / (16 * n)
    total = (z * salient[1] + (1 - z) * salient[0]).sum()
    for value in z.ravel():
        k = round(value * (m - 1))
        chance = math.comb(m - 1, k) * lam**k * (1 - lam) ** (m - 1 - k)
        total -= mixing.eta / n**2 * math.log(chance + 1e-8)

    def averaged(image: np.ndarray, row: int, column: int) -> np.ndarray:
        """A block's pixels in averages of 2 x 1: blocks are 2 x 3 pixels, and 3 has no divisor 2."""
        block = image[:, row * high : (row + 1) * high, column * wide : (column + 1) * wide]
        return block.reshape(len(block), high // 2, 2, wide).mean(axis=2)

    def border(u: int, v: int, one: tuple[int, int], two: tuple[int, int]) -> float:
        before, after = averaged(pair[u], *one), averaged(pair[v], *two)
        if one[0] != two[0]:
            return float(np.abs(before[:, -1] - after[:, 0]).mean())
        return float(np.abs(before[:, :, -1] - after[:, :, 0]).mean())

    for row, column in itertools.product(range(n), range(n)):
        for other in ((row + 1, column), (row, column + 1)):
            if max(other) == n:
                continue
            here, there = z[row, column], z[other]
            total += smooth * (here - there) ** 2
            for u, v in itertools.product((0, 1), (0, 1)):
                share = (here if u == 0 else 1 - here) * (there if v == 0 else 1 - there)
                total += smooth * mixing.gamma * share * border(u, v, (row, column), other)
    return float(total)


def test_the_energy_is_the_definition_up_to_a_constant() -> None:
    """At weights of 0 and 1 the borders cost what they show; a border of fractions has its own quadratic form."""
    pair, draws, mixing = a_pair(2), drawn(2), PuzzleMix(2, gamma=0.7)
    n, rng = 4, np.random.default_rng(0)
    salient = torch.rand(2, 2, n, n, generator=torch.Generator().manual_seed(2))
    unary, down, right = (c.double().numpy() for c in mixing.energy(pair, salient, draws["lam"]))
    for k in range(2):
        gaps = []
        for _ in range(6):
            z = rng.integers(2, size=(n, n))
            ours = np.take_along_axis(unary[k], z[..., None], axis=-1).sum()
            ours += (down[k] * np.diff(z, axis=0) ** 2).sum() + (right[k] * np.diff(z, axis=1) ** 2).sum()
            row = (pair[:, k].double().numpy(), salient[:, k].double().numpy(), float(draws["lam"][k]))
            gaps.append(ours - slow_energy(z.astype(float), *row, mixing))
        assert np.ptp(gaps) < 1e-6
        assert (down[k] > 0).all()


def test_levels_share_lambda_by_the_binomial_and_fractions_cost_squares() -> None:
    mixing, lam = PuzzleMix(3, gamma=0.0), torch.tensor([0.3])
    unary, down, right = mixing.energy(a_pair(1), torch.zeros(2, 1, 4, 4), lam)
    expected = [-0.2 / 16 * math.log(p) for p in (0.49, 0.42, 0.09)]
    torch.testing.assert_close(unary[0, 1, 2], torch.tensor(expected), atol=1e-6, rtol=1e-5)
    assert down.unique().item() == pytest.approx(1.2 / 64 / 4)
    assert right.shape == (1, 4, 3)


def test_the_minimum_cut_has_the_least_energy_of_all_labels() -> None:
    rng = np.random.default_rng(0)
    for m in (2, 4):
        unary, down, right = rng.random((20, 2, 3, m)), rng.random((20, 1, 3)) ** 4, rng.random((20, 2, 2)) ** 4
        every = np.array(list(itertools.product(range(m), repeat=6))).reshape(-1, 2, 3)
        for k, labels in enumerate(min_cut(unary, down, right)):
            energy = np.take_along_axis(unary[k][None], every[..., None], axis=-1).sum(axis=(1, 2, 3))
            energy += (down[k] * np.diff(every, axis=1) ** 2).sum(axis=(1, 2))
            energy += (right[k] * np.diff(every, axis=2) ** 2).sum(axis=(1, 2))
            assert labels.tolist() == every[energy.argmin()].tolist()


# ---- transport


def slow_move(salient: np.ndarray, inside: np.ndarray, t_eps: float) -> np.ndarray:
    """The plan of one image, round by round over all pairs of blocks."""
    size, n = len(salient), math.isqrt(len(salient))
    cost = np.empty((size, size))
    for b, place in itertools.product(range(size), range(size)):
        far = (b // n - place // n) ** 2 + (b % n - place % n) ** 2
        cost[b, place] = t_eps * far / (n - 1) ** 2 - salient[b] * inside[place]
    for _ in range(n):
        wanted = cost.argmin(axis=1)
        plan = np.zeros((size, size))
        for place in set(wanted):
            asking = np.flatnonzero(wanted == place)
            winner = asking[cost[asking, place].argmin()]
            plan[winner, place] = 1
            for b in asking:
                cost[b, place] += b != winner
    return plan


def test_blocks_move_as_the_plan_says() -> None:
    rng = np.random.default_rng(0)
    moved = 0
    for n in (2, 3, 5):
        salient, inside = rng.dirichlet(np.full(n * n, 0.3), 20), rng.random((20, n * n)) < 0.4
        for t_eps in (0.01, 0.1, 0.8):
            actual = move(torch.from_numpy(salient), torch.from_numpy(inside), t_eps).numpy()
            for k in range(20):
                plan = slow_move(salient[k], inside[k], t_eps)
                assert plan.sum(axis=0).max() <= 1
                assert plan.sum(axis=1).max() <= 1
                expected = np.where(plan.any(axis=0), plan.argmax(axis=0), np.arange(n * n))
                assert actual[k].tolist() == expected.tolist()
                moved += int((actual[k] != np.arange(n * n)).sum())
    assert moved > 100


def test_transport_moves_tiles_of_each_image_and_leaves_weights() -> None:
    pair, draws = a_pair(40, 8), drawn(40)
    still, one = PuzzleMix(transport=False)(pair[0], pair[1], draws)
    mixed, other = PuzzleMix(t_eps=0.01)(pair[0], pair[1], draws)
    assert torch.equal(one, other)
    assert not torch.equal(still, mixed)
    maps = torch.stack([draws["saliency"], draws["partner_saliency"]])
    _, mask = PuzzleMix().puzzle(pair, maps, draws["lam"], 4)
    pooled = maps.reshape(2, 40, 4, 2, 4, 3).mean(dim=(3, 5)) + 1e-12
    pooled = pooled / pooled.sum(dim=(2, 3), keepdim=True)
    for k in range(40):
        canvas = torch.zeros(8, *SIZE)
        for e, share in ((0, mask[k]), (1, 1 - mask[k])):
            source = move(pooled[e, k].reshape(1, 16), share.reshape(1, 16) > 0, 0.01)[0].tolist()
            for place, b in enumerate(source):
                tile = pair[e, k][:, b // 4 * 2 : b // 4 * 2 + 2, b % 4 * 3 : b % 4 * 3 + 3]
                here = canvas[:, place // 4 * 2 : place // 4 * 2 + 2, place % 4 * 3 : place % 4 * 3 + 3]
                here += share.flatten()[place] * tile
        torch.testing.assert_close(mixed[k], canvas)


# ---- saliency


def test_saliency_is_the_size_of_the_gradient_in_evaluation_mode() -> None:
    model, x = ConvNet(3, 2), pictures(5)
    model.norm1.running_mean.fill_(0.3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    actual = saliency(model, x)
    assert model.training
    assert all(p.grad is None for p in model.parameters())
    assert_states_equal(before, dict(model.state_dict()))
    model.eval()
    for k in range(5):
        row = x[k : k + 1].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(row).sum(), row)
        torch.testing.assert_close(actual[k], gradient[0].square().mean(dim=0).sqrt())
    model.out.weight.data[1] = 0.0  # the second output is a variance, which has no part in it
    torch.testing.assert_close(saliency(model, x, 1, 1), saliency(model, x))


def test_a_row_that_is_predicted_exactly_has_a_saliency() -> None:
    """The gradient of its squared error is 0; the prediction's is not. Where that is 0, too, all blocks are equal."""
    run = make_run(Mix(Permutation(), Beta(2.0), mixing=PuzzleMix()), 0, picture_data(), lambda *_: ConvNet())
    _, batches = epoch_batches(run)
    stack, method = make_stack([run], lr=1e-3)
    run.model.eval()
    exact = replace(batches[0], y=run.model(batches[0].x).detach())
    run.model.train()
    assert (saliency(stack.model, exact.x).sum(dim=(1, 2)) > 0).all()
    assert torch.isfinite(method.step(stack, exact))
    nn.init.zeros_(run.model.out.weight)
    assert (saliency(stack.model, exact.x) == 0).all()
    assert torch.isfinite(method.step(stack, exact))
    draws = drawn(4) | {"saliency": torch.zeros(4, *SIZE), "partner_saliency": torch.zeros(4, *SIZE)}
    mixed, weight = PuzzleMix()(pictures(4), pictures(4), draws)
    assert torch.equal(mixed, pictures(4))
    assert torch.isfinite(weight).all()


# ---- as the mixing of a method


def puzzle_run(pairing: Any = None, seed: int = 0, **options: Any) -> Run:
    method = Mix(pairing or Uniform(), Beta(2.0), mixing=PuzzleMix(**options))
    return make_run(method, seed, picture_data(), lambda *_: ConvNet())


def test_a_step_fits_the_label_that_weighs_as_the_mask() -> None:
    run = puzzle_run()
    _, batches = epoch_batches(run)
    batch: Batch = batches[0]
    stack, method = make_stack([run], lr=1e-3)
    assert batch.partner is not None
    maps = {name: saliency(run.model, r.x) for name, r in (("saliency", batch), ("partner_saliency", batch.partner))}
    mixed, weight = method.mixing(batch.x, batch.partner.x, {**batch.draws, **maps})
    model = copy.deepcopy(run.model)  # a pass in training mode changes the statistics that the saliency is taken with
    expected = squared_error(model(mixed), mix(batch.y, batch.partner.y, weight))
    assert not torch.equal(weight, batch.draws["lam"])
    assert method.step(stack, batch).item() == pytest.approx(expected.item(), rel=1e-5)
    assert "saliency" not in batch.draws


def test_each_batch_draws_one_block_count() -> None:
    order = EpochBatches(np.arange(30_000), np.full(7500, 4))
    part = PuzzleMix().draw(order, np.random.default_rng(0))["blocks"].reshape(7500, 4)
    assert (part == part[:, :1]).all()
    counts = np.bincount((part[:, 0] * 4).astype(int), minlength=4)
    assert np.abs(counts - 1875).max() < 5 * math.sqrt(1875)
    assert PuzzleMix().block_counts(28, 28) == [2, 4, 7, 14]
    assert PuzzleMix().block_counts(224, 224) == [2, 4, 8, 16]
    assert PuzzleMix().block_counts(112, 84) == [2, 4, 7, 14]


def test_pairs_with_several_block_counts_are_mixed_as_alone() -> None:
    pair, draws = a_pair(6), drawn(6)
    draws["blocks"] = torch.tensor([0.1, 0.9, 0.1, 0.9, 0.9, 0.1])
    mixed, weight = PuzzleMix()(pair[0].view(2, 3, 3, *SIZE), pair[1].view(2, 3, 3, *SIZE), {
        name: value.view(2, 3, *value.shape[1:]) for name, value in draws.items()
    })  # fmt: skip
    assert weight.shape == (2, 3)
    for k in range(6):
        alone, share = PuzzleMix()(pair[0][k : k + 1], pair[1][k : k + 1], {n: v[k : k + 1] for n, v in draws.items()})
        torch.testing.assert_close(mixed.flatten(0, 1)[k], alone[0], atol=1e-6, rtol=0)
        assert weight.flatten()[k] == share[0]


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    straight = train([puzzle_run()], settings(epochs=2))
    assert_same(interrupted(lambda: [puzzle_run()], checkpoints(tmp_path), 1, epochs=2), straight)


def test_a_stack_takes_the_gradients_of_its_runs() -> None:
    def runs(*seeds: int) -> list[Run]:
        parts = Uniform(), Beta(2.0), "input", PuzzleMix()
        return [make_run(Mix(*parts), seed, picture_data(), lambda *_: FCN3((3, *SIZE), 1, 16)) for seed in seeds]

    for seed, ours in enumerate(train(runs(0, 1), settings())):
        (alone,) = train(runs(seed), settings())
        assert (ours.stack, alone.stack) == (2, 1)
        assert_states_close(ours.state_dict, alone.state_dict, 1e-5)


def refused_run(layer: str, data: Any, *model: Any) -> Run:
    return fitted(make_run(Mix(Uniform(), Constant(0.5), layer, PuzzleMix()), 0, data, *model))


test_what_does_not_suit_is_refused_in_a_line = refuses(
    [
        (lambda: refused_run("input", make_data()), r"PuzzleMix needs images \(B, C, H, W\) .*got \(2, 3\)"),
        (lambda: refused_run("hidden", picture_data(), lambda *_: ConvNet()), "layer must be input, got 'hidden'"),
        (lambda: PuzzleMix().block_counts(8, 13), "sides share a divisor from 2 to 16, got 8 x 13"),
        (lambda: PuzzleMix(1), "levels must be a whole number, 2 or more, got 1"),
        (lambda: PuzzleMix(beta=-1), "beta must be a finite number, 0 or more, got -1"),
        (lambda: PuzzleMix()(pictures(2), pictures(2), {"lam": torch.ones(2)}), "looks at gradients before it mixes"),
    ]
)
