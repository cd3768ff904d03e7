import pytest
import torch

from cmixup.seeding import Streams, torch_seed

GENERATORS = ("order", "partners", "lam", "mixing", "views")


def first(streams: Streams) -> dict[str, float]:
    return {name: getattr(streams, name).random() for name in GENERATORS}


def test_same_seed_gives_the_same_streams() -> None:
    one, other = Streams(3), Streams(3)
    assert first(one) == first(other)
    assert (one.init, one.training) == (other.init, other.training)


def test_every_stream_and_every_seed_differ() -> None:
    values = [v for seed in range(5) for v in first(Streams(seed)).values()]
    assert len(set(values)) == len(values)
    seeds = [s for seed in range(5) for s in (Streams(seed).init, Streams(seed).training)]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize("drawn", GENERATORS)
def test_drawing_from_one_stream_leaves_the_others(drawn: str) -> None:
    untouched, streams = first(Streams(1)), Streams(1)
    getattr(streams, drawn).random(1000)
    for name, value in first(streams).items():
        assert (value == untouched[name]) is (name != drawn)


def test_torch_seed_seeds_inside_and_restores_outside() -> None:
    torch.manual_seed(0)
    torch.rand(3)
    expected_after = torch.get_rng_state()
    with torch_seed(7):
        inside = torch.rand(4)
    assert torch.equal(torch.get_rng_state(), expected_after)
    torch.manual_seed(7)
    assert torch.equal(inside, torch.rand(4))


def test_seeding_the_cpu_leaves_other_devices_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a generator that is not put back was seeded")

    for name in ("manual_seed", "manual_seed_all"):
        monkeypatch.setattr(torch.cuda, name, refuse)
    with torch_seed(3):
        first = torch.rand(2)
    with torch_seed(3):
        assert torch.equal(torch.rand(2), first)
