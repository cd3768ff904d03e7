import numpy as np
import pytest
import torch

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Constant
from cmixup.networks.fcn3 import FCN3
from cmixup.pairing.uniform import Permutation, Uniform
from cmixup.training.batch import Batch, shuffled
from cmixup.training.method import Method
from tests.helpers import (
    METHODS,
    composed,
    epoch_batches,
    fitted,
    make_data,
    make_run,
    make_split,
    make_stack,
    part_kind,
    refuses,
    train_one,
)


@pytest.mark.parametrize("layer", ["input", "block1", "block2"])
def test_mix_loss_mixes_states_at_the_layer_and_labels_once(layer: str) -> None:
    run = make_run(Mix(Uniform(), Constant(0.3), layer=layer), data=make_data(d_y=2))
    _, batches = epoch_batches(run)
    batch, model = batches[1], run.model
    assert isinstance(model, FCN3)
    assert batch.partner is not None
    state = 0.3 * model.encode(batch.x, layer) + 0.7 * model.encode(batch.partner.x, layer)
    target = 0.3 * batch.y + 0.7 * batch.partner.y
    expected = (model.decode(state, layer) - target).square().mean()
    torch.testing.assert_close(run.method.loss(model, batch), expected)


def test_a_permutation_stays_inside_its_batch() -> None:
    pairing = Permutation()
    pairing.fit(make_split(50))
    order = shuffled(50, 16, np.random.default_rng(0))
    partner = pairing.draw(order, np.random.default_rng(1))
    start = 0
    for batch in order.batches():
        assert sorted(partner[start : start + len(batch)].tolist()) == sorted(batch.tolist())
        start += len(batch)
    assert partner.tolist() != order.index.tolist()


def test_diagnostics_are_medians_over_the_rows_of_the_definition() -> None:
    data = make_data(4)
    y = data.train.y.double()
    rows = torch.softmax(-((y - y.T) ** 2) / (2 * 0.3**2), dim=1)
    actual = train_one(composed("cmixup"), 4, data).diagnostics
    effective = np.median((1 / rows.square().sum(dim=1)).numpy()) / 48
    assert actual["effective_fraction"] == pytest.approx(effective, rel=1e-9)
    assert actual["self_probability"] == pytest.approx(np.median(rows.diagonal().numpy()), rel=1e-9)


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: composed("cmixup", bandwidth=-1.0), "bandwidth must be 0 or more .*got -1.0"),
        (lambda: composed("cmixup", bandwidth="wide"), r"bandwidth must be a number.*got 'wide'"),
        (lambda: composed("cmixup", bandwidth=1.0, alpha=0.0), "alpha must be a finite number above 0, got 0.0"),
        (lambda: composed("mixup", lam_per="epoch"), "lam_per must be one of example, batch, got 'epoch'"),
        (lambda: fitted(make_run(composed("manifold_mixup", layer="block9"))),
         r"layer must be a mix point of FCN3 \(input, block1, block2\), got 'block9'"),
        (lambda: Method().loss(FCN3((3,), 1), Batch(torch.zeros(1, 3), torch.zeros(1, 1), torch.zeros(1))),
         "method Method defines no loss"),
    ]
)  # fmt: skip


#: The others have no loss before the step, in which their pairing chooses the partners.
WITH_LOSS = [name for name in METHODS if not getattr(part_kind(METHODS[name].args[0], "pairing"), "in_step", False)]


@pytest.mark.parametrize("name", [n for n in WITH_LOSS if n not in ("fish", "input_noise")])  # several steps; new noise
def test_a_step_returns_the_loss_before_the_update(name: str) -> None:
    run = make_run(METHODS[name]())
    _, batches = epoch_batches(run)
    stack, method = make_stack([run], lr=1e-4)
    assert method is run.method
    expected = run.method.loss(run.model, batches[0]).item()
    loss = run.method.step(stack, batches[0])
    assert loss.item() == pytest.approx(expected)
    assert not loss.requires_grad
    assert run.method.loss(run.model, batches[0]).item() < expected
