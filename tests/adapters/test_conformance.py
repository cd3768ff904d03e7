"""Every adapter passes every check, and every known bug fails one."""

import itertools
from multiprocessing import get_all_start_methods
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset, default_collate

from cmixup import BatchPartnerSampler
from tests.adapters.conformance import CHECKS, COSTLY, OF_ANY_FORM, WORKER_CHECKS
from tests.adapters.kinds import ADAPTERS, Adapter, Batches, Call, Collate, Plain


def cases() -> list[Any]:
    """Every adapter with every check, some of them slow."""
    quick = {
        (name, check)
        for name, kind in ADAPTERS.items()
        for check in (CHECKS if kind.own else OF_ANY_FORM)
        if name in COSTLY.get(check, ADAPTERS)
    }
    every = itertools.product(ADAPTERS, CHECKS)
    return [pytest.param(*case, marks=[] if case in quick else [pytest.mark.slow]) for case in every]


@pytest.mark.parametrize(("adapter", "check"), cases())
def test_adapter(adapter: str, check: str) -> None:
    kind = ADAPTERS[adapter]
    if check == "evaluation" and not kind.evaluates:
        pytest.skip("it is for training only")
    if check == "memory" and issubclass(kind, Plain):
        pytest.skip("it reads row by row, slowly under tracemalloc: test_pairs looks at its sampler")
    CHECKS[check](kind)


@pytest.mark.slow
@pytest.mark.parametrize("check", WORKER_CHECKS)
@pytest.mark.parametrize("adapter", [name for name, kind in ADAPTERS.items() if kind.workers])
def test_adapter_with_workers(adapter: str, check: str) -> None:
    WORKER_CHECKS[check](ADAPTERS[adapter])


class Buggy(Call):
    """Draws as C-Mixup does; subclasses get something wrong afterwards."""

    def begin(self) -> None:
        self.rng = torch.Generator().manual_seed(self.seed or 0)
        self.partners = BatchPartnerSampler(self.bandwidth)

    def epoch(self) -> Batches:
        return [self.mixed(self.x[part], self.y[part]) for part in self.slices()]

    def draws(self, y: Tensor) -> tuple[Tensor, Tensor]:
        lam = torch.distributions.Beta(2.0, 2.0)
        torch.manual_seed(int(torch.randint(2**31, (), generator=self.rng)))
        return self.partners.draw(y, y, self.rng), lam.sample((len(y),)).to(y.dtype)

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        j, lam = self.draws(y)
        return torch.lerp(x[j], x, lam[:, None]), torch.lerp(y[j], y, lam.reshape(-1, *[1] * (y.ndim - 1)))


class LabelsUnmixed(Buggy):
    """Mixes inputs and returns the labels as they came (tsai #791)."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        return super().mixed(x, y)[0], y


class Table(Buggy):
    """Holds an N x N table of probabilities, as the released code."""

    def begin(self) -> None:
        super().begin()
        y = self.y.double().numpy().reshape(len(self.y), -1)
        self.table = np.exp(-((y[:, None, 0] - y[None, :, 0]) ** 2) / (2 * self.bandwidth**2))


class CapturedGenerator(Collate):
    """Draws in a collate_fn from a generator made outside."""

    def begin(self) -> None:
        rng = torch.Generator().manual_seed(0)

        def collate(rows: Any) -> tuple[Tensor, Tensor]:
            x, y = default_collate(rows)
            j, lam = torch.randperm(len(x), generator=rng), torch.rand(len(x), 1, generator=rng)
            return torch.lerp(x[j], x, lam), torch.lerp(y[j], y, lam)

        self.loader = DataLoader(TensorDataset(self.x, self.y), self.batch_size, collate_fn=collate, **self.options)

    def epoch(self) -> Batches:
        return list(self.loader)


class Broadcasts(Buggy):
    """Multiplies labels (B,) by lambda (B, 1)."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        j, lam = self.draws(y)
        return torch.lerp(x[j], x, lam[:, None]), lam[:, None] * y + (1 - lam[:, None]) * y[j]


class OtherLambda(Buggy):
    """Gives the labels the weight of the other row."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        j, lam = self.draws(y)
        return torch.lerp(x[j], x, lam[:, None]), torch.lerp(y, y[j], lam[:, None])


class Truncates(Buggy):
    """Writes mixed labels back into whole numbers."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        mixed_x, mixed_y = super().mixed(x, y.float())
        return mixed_x, mixed_y.to(y.dtype)


class AnyPartner(Buggy):
    """Draws partners without looking at labels."""

    def draws(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.randint(len(y), (len(y),), generator=self.rng), super().draws(y)[1]


class AlwaysSame(Buggy):
    """Seeds itself anew in every epoch."""

    def epoch(self) -> Batches:
        self.begin()
        return super().epoch()


class AlsoInEvaluation(Buggy):
    """Does not know of evaluation."""


class InPlace(Buggy):
    """Writes into the batch it was given, as timm's Mixup (YOLOX #275 changed labels so)."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        found = super().mixed(x, y)
        return x.copy_(found[0]), y.copy_(found[1])


class DropsLast(Buggy):
    """Leaves the last, smaller batch out."""

    def epoch(self) -> Batches:
        return [batch for batch in super().epoch() if len(batch[0]) == self.batch_size]


class Squeezes(Buggy):
    """Loses the axis of a batch of one (BirdSet #274)."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        found = super().mixed(x, y)
        return found[0].squeeze(0), found[1].squeeze(0)


class FloatsAll(Buggy):
    """Returns float32 whatever it was given."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        return super().mixed(x.float(), y.float())


class LabelsOfInputDtype(Buggy):
    """Casts labels to the inputs' dtype (kornia #4657: 257 becomes 256)."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        j, lam = self.draws(y.float())
        y = y.to(x.dtype)
        mixed_x = torch.lerp(x[j].float(), x.float(), lam[:, None]).to(x.dtype)
        return mixed_x, torch.lerp(y[j].float(), y.float(), lam).to(y.dtype).float()


class MisreadsThree(Buggy):
    """Takes three labels for a triple (y_a, y_b, lam) (braindecode #1121, #1122, #449)."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        mixed_x, mixed_y = super().mixed(x, y)
        return mixed_x, torch.lerp(y[0], y[1], y[2]) if len(y) == 3 else mixed_y


class CutsMaps(Buggy):
    """Pastes the partner's half into a label map where inputs are averaged (MONAI #8137, a release that changed it)."""

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        j, lam = self.draws(y.flatten(1))
        cut = y.clone()
        cut[..., :1] = y[j][..., :1]
        return torch.lerp(x[j], x, lam[:, None]), cut


BUGS: list[tuple[type[Adapter], str]] = [
    (LabelsUnmixed, "batches of 8"),
    (Table, "memory"),
    (Broadcasts, "flat labels"),
    (OtherLambda, "batches of 8"),
    (OtherLambda, "weighs the row itself"),
    (Truncates, "whole-number labels"),
    (AnyPartner, "follows the kernel"),
    (AlwaysSame, "seeds and epochs"),
    (AlsoInEvaluation, "evaluation"),
    (InPlace, "nothing in place"),
    (DropsLast, "batches of 8"),
    (Squeezes, "batches of 1"),
    (FloatsAll, "float64"),
    (LabelsOfInputDtype, "labels beside bfloat16"),
    (MisreadsThree, "batches of 3"),
    (CutsMaps, "label maps"),
]
#: What cannot be asked of `Buggy`, since a bug is what it lacks or adds.
NOT_OF_BUGGY = {"evaluation", "whole-number labels", "labels beside bfloat16", "label maps"}


@pytest.mark.parametrize(("bug", "check"), BUGS, ids=[f"{bug.__name__}-{check}" for bug, check in BUGS])
def test_a_known_bug_fails(bug: type[Adapter], check: str) -> None:
    with pytest.raises(AssertionError):
        CHECKS[check](bug)


@pytest.mark.parametrize("check", sorted({check for _, check in BUGS} - NOT_OF_BUGGY))
def test_what_the_bugs_stand_on_passes(check: str) -> None:
    """So it is the bug that fails."""
    CHECKS[check](Buggy)


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="its generator is captured by forked workers alone")
def test_workers_in_the_default_suite() -> None:
    with pytest.raises(AssertionError, match="are the same"):
        WORKER_CHECKS["workers"](CapturedGenerator)
    WORKER_CHECKS["workers"](ADAPTERS["Collate"])
