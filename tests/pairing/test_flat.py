"""Distances between standardised inputs."""

import numpy as np
import pytest
import torch

from cmixup.pairing import flat
from cmixup.pairing.flat import Standardised
from tests.helpers import Lazy, make_split


def definition(x: torch.Tensor) -> np.ndarray:
    rows = x.reshape(len(x), -1).double().numpy()
    deviation = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)
    return np.linalg.norm(rows[:, None] - rows, axis=2)


def test_distances_are_those_of_the_definition() -> None:
    x = make_split(40).x * torch.tensor([1.0, 100.0, 0.01]) + torch.tensor([0.0, 1e3, 5.0])
    x = torch.cat([x, torch.full((40, 1), 0.1)], dim=1)  # a constant column counts nothing
    inputs, expected = Standardised(x), definition(x)
    first, second = (a.ravel() for a in np.indices((40, 40)))
    np.testing.assert_allclose(inputs.between(first, second).reshape(40, 40), expected, atol=2e-3)
    assert (inputs.between(np.arange(40), np.arange(40)) == 0).all()
    np.testing.assert_allclose(np.sort(inputs.pair_distances()), np.sort(expected.ravel()), atol=2e-3)
    for k in (0, 1, 5, 39):
        np.testing.assert_allclose(inputs.kth_distance(k), np.sort(expected, axis=1)[:, k], atol=2e-3)


def test_the_kth_distance_counts_other_rows_where_inputs_repeat() -> None:
    inputs = Standardised(torch.tensor([[0.0], [0.0], [0.0], [1.0]]))
    assert inputs.kth_distance(1).tolist() == pytest.approx([0, 0, 0, 1 / 0.75**0.5 / 0.5])
    assert (inputs.kth_distance(3)[:3] > 0).all()


@pytest.mark.parametrize("room", [1, 7, 100])
def test_inputs_read_on_demand_in_pieces(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = make_split(40).x.reshape(40, 3, 1)
    whole = Standardised(x)
    pairs = np.arange(39), np.arange(1, 40)
    monkeypatch.setattr(flat, "INPUT_BYTES_PER_CHUNK", 12 * room)
    lazy = Lazy(x)
    pieces = Standardised(lazy)
    assert len(pieces.sample) == min(40, max(2, room))
    if room == 100:
        np.testing.assert_allclose(pieces.between(*pairs), whole.between(*pairs), rtol=1e-6)
        np.testing.assert_allclose(pieces.kth_distance(4), whole.kth_distance(4), rtol=1e-6)
    pieces.between(*pairs)
    pieces.kth_distance(4)
    assert max(lazy.asked) <= max(2, room)


def test_large_data_is_sampled_the_same_way_every_time() -> None:
    x = torch.rand(flat.SAMPLED_ROWS + 500, 2, generator=torch.Generator().manual_seed(0))
    one, other = Standardised(x), Standardised(x)
    assert len(one.sample) == flat.SAMPLED_ROWS
    assert one.sample.tolist() == other.sample.tolist()
    assert len(set(one.sample.tolist())) == flat.SAMPLED_ROWS
    torch.testing.assert_close(one.read(np.arange(len(x))).std(dim=0, correction=0), torch.ones(2))
