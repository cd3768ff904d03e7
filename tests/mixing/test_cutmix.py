"""CutMix: boxes of the partner, and labels weighted by the pixels that are kept."""

import numpy as np
import pytest
import torch
from torch import Tensor

from cmixup.errors import InputError
from cmixup.methods.mix import Mix
from cmixup.mixing.cutmix import CutMix
from cmixup.mixing.lam import Beta, Constant
from cmixup.mixing.linear import mix
from cmixup.pairing.uniform import Permutation, Uniform
from cmixup.training.batch import EpochBatches, shuffled
from cmixup.training.method import squared_error
from cmixup.training.trainer import train
from tests.helpers import epoch_batches, fitted, make_data, make_run, refuses, settings
from tests.mixing.images import ConvNet, picture_data

HEIGHT, WIDTH = 9, 14


def pictures(n: int, channels: int = 3, seed: int = 0, lead: tuple[int, ...] = ()) -> Tensor:
    return torch.rand(*lead, n, channels, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(seed))


def drawn(n: int, seed: int = 0) -> dict[str, Tensor]:
    """Lambda and boxes of n images, each a batch with a box of its own."""
    rng = np.random.default_rng(seed)
    boxes = CutMix().draw(EpochBatches(np.arange(n), np.ones(n, dtype=np.int64)), rng)["box"]
    return {"lam": torch.from_numpy(rng.random(n, dtype=np.float32)), "box": torch.from_numpy(boxes)}


def slow_inside(lam: float, box: list[float]) -> np.ndarray:
    """The pixels of the box as the original's rand_bbox takes them, clipped at the border."""
    inside = np.zeros((HEIGHT, WIDTH), dtype=bool)
    if not box[2]:
        return inside
    bounds = []
    for centre, size in zip(box, (HEIGHT, WIDTH), strict=False):
        cut, middle = int(size * np.sqrt(np.float32(1) - np.float32(lam))), int(np.float32(centre) * np.float32(size))
        bounds.append((max(middle - cut // 2, 0), min(middle + cut // 2, size)))
    inside[slice(*bounds[0]), slice(*bounds[1])] = True
    return inside


@pytest.mark.parametrize("channels", [1, 3, 8])
def test_pixels_in_the_box_are_the_partners_and_the_weight_is_the_share_kept(channels: int) -> None:
    first, second, draws = pictures(200, channels), pictures(200, channels, 1), drawn(200)
    mixed, weight = CutMix()(first, second, draws)
    cut = 0
    for k in range(200):
        inside = slow_inside(draws["lam"][k].item(), draws["box"][k].tolist())
        assert torch.equal(mixed[k][:, inside], second[k][:, inside])
        assert torch.equal(mixed[k][:, ~inside], first[k][:, ~inside])
        assert weight[k].item() == np.float32(1) - np.float32(inside.sum()) / np.float32(inside.size)
        cut += int(inside.any())
    assert cut > 150
    clips = (part.unsqueeze(2).expand(-1, -1, 4, -1, -1) for part in (first, second))  # (B, C, T, H, W)
    for frame in CutMix()(*clips, draws)[0].unbind(2):
        assert torch.equal(frame, mixed)


def test_frequencies_of_cuts() -> None:
    order = EpochBatches(np.arange(80_000), np.full(20_000, 4))
    for probability in (0.0, 0.5, 1.0):
        flags = CutMix(probability).draw(order, np.random.default_rng(0))["box"][::4, 2]
        assert set(flags.tolist()) <= {0.0, 1.0}
        spread = (probability * (1 - probability) / len(flags)) ** 0.5
        assert abs(flags.mean() - probability) <= 4 * spread


def test_a_batch_has_one_box() -> None:
    order = shuffled(43, 16, np.random.default_rng(0))
    boxes = CutMix().draw(order, np.random.default_rng(1))["box"]
    assert boxes.shape == (43, 3)
    assert boxes.dtype == np.float32
    assert ((boxes[:, :2] >= 0) & (boxes[:, :2] <= 1)).all()
    pieces = np.split(boxes, np.cumsum(order.sizes)[:-1])
    assert all((piece == piece[0]).all() for piece in pieces)
    assert len(np.unique(boxes[:, 0])) == len(np.unique(boxes[:, 1])) == 3


def test_a_leading_axis_of_models_gives_the_same_as_one_by_one() -> None:
    first, second = pictures(20, lead=(3,)), pictures(20, seed=1, lead=(3,))
    by_model = [drawn(20, seed) for seed in range(3)]
    together = {name: torch.stack([draws[name] for draws in by_model]) for name in by_model[0]}
    mixed, weight = CutMix()(first, second, together)
    assert weight.shape == (3, 20)
    for e in range(3):
        alone, share = CutMix()(first[e], second[e], by_model[e])
        assert torch.equal(mixed[e], alone)
        assert torch.equal(weight[e], share)


# ---- as the mixing of a method


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_a_method_mixes_images_or_feature_maps_by_the_weight_kept(layer: str) -> None:
    run = make_run(
        Mix(Permutation(), Beta(1.0), layer, CutMix()), 0, picture_data(size=(HEIGHT, WIDTH), n=48),
        lambda *_: ConvNet(),
    )  # fmt: skip
    _, batches = epoch_batches(run)
    batch, model = batches[0], run.model
    assert batch.partner is not None
    assert batch.draws["box"].shape == (16, 3)
    name = "second" if layer == "hidden" else "input"
    first, second = (model.encode(rows.x, name) for rows in (batch, batch.partner))
    assert first.shape[-2:] == ((3, 4) if layer == "hidden" else (HEIGHT, WIDTH))
    mixed, weight = CutMix()(first, second, batch.draws)
    assert 0 < weight.mean() < 1
    assert not torch.equal(weight, batch.draws["lam"])
    expected = squared_error(model.decode(mixed, name), mix(batch.y, batch.partner.y, weight))
    torch.testing.assert_close(run.method.loss(model, batch), expected)
    (result,) = train([run], settings(epochs=2))
    assert not result.failure


def test_tables_are_refused() -> None:
    for layer, name, width in (("input", "input", 3), ("hidden", "block1", 128)):
        run = make_run(Mix(Uniform(), Constant(0.5), layer, CutMix()), data=make_data())
        message = rf"mixing CutMix needs images \(B, C, H, W\) at layer '{name}', got \(2, {width}\) of data/train"
        with pytest.raises(InputError, match=message):
            fitted(run)


test_bad_values_are_refused_by_name = refuses([(lambda: CutMix(1.5), r"probability must lie in \[0, 1\], got 1.5")])
