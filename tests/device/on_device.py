"""Training on a device, with a stop and a restart between two epochs, and partners drawn there are as on the CPU."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from cmixup import BatchPartnerSampler, PartnerSampler
from cmixup.data import Split
from cmixup.inputs.images import ImageFiles, ImageRows
from cmixup.training.loader import BatchLoader
from cmixup.training.trainer import RunResult, train
from datasets.images import AugmentedRows
from scripts.driver.checkpoints import Checkpoints
from tests.device.cases import RESTARTED, cover, make_method, make_run
from tests.device.conftest import Steps
from tests.helpers import settings

Case = tuple[str, str, dict[str, str], int]  # a backbone, a method and its options, and how many seeds
SETTINGS = {"batch_size": 8, "eval_batch_size": 4, "lr": 1e-3, "label_scaling": "standard"}
#: Steps that wait for the device: a layer that a batch draws is read, and so are the labels of graph cuts.
WAIT = {"deepdta": {"_local_scalar_dense"}, "local_mixup": {"_local_scalar_dense"},
        "local_metamix": {"_local_scalar_dense"},
        "cmixup_h_pool": {"_local_scalar_dense"},  # where it is in the epoch
        "puzzlemix": {"tolist", "nonzero", "_to_copy"}, "puzzlemix_cmixup": {"tolist", "nonzero", "_to_copy"},
        }  # fmt: skip
MOVE = {"puzzlemix": {"tensor", "_to_copy"}, "puzzlemix_cmixup": {"tensor", "_to_copy"}}


def results(case: Case, device: torch.device, **how: object) -> list[RunResult]:
    backbone, method, options, count = case
    runs = [make_run(backbone, make_method(method, **options), seed) for seed in range(count)]
    epochs = how.pop("epochs")
    track = ["train"] if epochs > 1 else []
    return train(runs, settings(**SETTINGS, epochs=epochs, track=track), device, **how)


@pytest.mark.parametrize("case", cover(), ids=str)
def test_every_part_trains(case: Case, device: torch.device, tmp_path: Path, steps: Steps) -> None:
    """One epoch, or two with a restart between them, give what as many give on the CPU."""
    backbone, method, *_ = case
    restart = (backbone, method) in RESTARTED
    epochs = 2 if restart else 1
    saved = Checkpoints(lambda seed: tmp_path / str(seed), 1, "key") if restart else None
    if restart:
        results(case, device, epochs=1, checkpoints=saved)
    trained = results(case, device, epochs=epochs, checkpoints=saved)
    wanted = results(case, torch.device("cpu"), epochs=epochs)
    close = {"rtol": 1e-3, "atol": 1e-4} if device.type == "cuda" else {"rtol": 1e-5, "atol": 1e-6}
    if device.type == "cuda" and method == "input_noise":  # drawn there
        close = {"rtol": 0.1, "atol": 0.1}
    for ours, theirs in zip(trained, wanted, strict=True):
        assert (ours.failure, ours.stack, len(ours.history)) == ("", theirs.stack, epochs)
        for part, predicted in theirs.predictions.items():
            for name, prediction in predicted.items():
                torch.testing.assert_close(ours.predictions[part][name], prediction, **close)
        assert ours.best_epoch == theirs.best_epoch
        assert all(value.device.type == "cpu" for value in ours.state_dict.values())
    may = WAIT.get(backbone, set()) | WAIT.get(method, set())
    assert all(waited <= may and moved <= MOVE.get(method, set()) for waited, moved in steps), steps


def test_dropout_draws_on_the_device_and_goes_on(device: torch.device, tmp_path: Path) -> None:
    def predictions(epochs: int, saved: Checkpoints | None = None) -> torch.Tensor:
        run = make_run("fcn3", make_method("erm"), 0)
        run.model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        with torch.no_grad():
            for parameter in run.model.parameters():
                parameter.fill_(0.1)
        (result,) = train([run], settings(**SETTINGS, epochs=epochs), device, checkpoints=saved)
        return result.predictions["test"][""]

    saved = Checkpoints(lambda _: tmp_path, 1, "key")
    before = torch.get_device_module(device).get_rng_state(device)
    predictions(1, saved)
    assert torch.equal(predictions(2, saved), straight := predictions(2))
    assert not torch.equal(straight, predictions(1))
    assert torch.equal(torch.get_device_module(device).get_rng_state(device), before)


def test_images_in_memory_lie_on_the_device(device: torch.device) -> None:
    files = ImageFiles([Path()] * 6, 4, deep=False)
    files.kept = torch.arange(6 * 3 * 16, dtype=torch.uint8).reshape(files.shape) % 251
    images = ImageRows(files, torch.tensor([5, 1, 3, 0]), (0.5, 0.4, 0.3), (0.1, 0.2, 0.3))
    labels = torch.tensor([[5.0], [1.0], [3.0], [0.0]])
    for x in (images, AugmentedRows(images, crops=False)):
        rows = BatchLoader([Split(x, labels, torch.zeros(4, dtype=torch.int64))], device)
        assert rows.index_device == device
        batch = rows.fetch(torch.tensor([[2, 0]]).to(device))
        torch.testing.assert_close(batch.x.cpu(), images[torch.tensor([2, 0])])
        assert (batch.x.device, batch.y.flatten().tolist()) == (device, [3.0, 5.0])
    assert images.files.kept.device.type == images.rows.device.type == "cpu"


@pytest.mark.parametrize("shape", [(300,), (300, 2)])
def test_partners_stay_on_the_device(shape: tuple[int, ...], device: torch.device) -> None:
    labels = torch.as_tensor(np.random.default_rng(0).normal(size=shape))
    drawn, wanted = (PartnerSampler(some, 0.3).epoch(np.random.default_rng(3)) for some in (labels.to(device), labels))
    assert (drawn.device, drawn.dtype, len(drawn)) == (device, torch.int64, 300)
    assert drawn.cpu().equal(wanted)
    first, sampler = labels[:8], BatchPartnerSampler(0.5, candidates="b1+b2")
    assert sampler.draw(first.to(device), labels.to(device), np.random.default_rng(0)).device == device
    rows = sampler.probabilities(first.to(device), labels.to(device))
    torch.testing.assert_close(rows.cpu(), sampler.probabilities(first, labels))
