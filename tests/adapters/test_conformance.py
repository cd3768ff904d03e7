"""Every adapter passes every check, and every known bug fails one."""

import itertools
from multiprocessing import get_all_start_methods
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset, default_collate

from tests.adapters.conformance import CHECKS, COSTLY, OF_ANY_FORM, WORKER_CHECKS
from tests.adapters.kinds import ADAPTERS, Batches, Collate, Plain


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


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="its generator is captured by forked workers alone")
def test_workers_in_the_default_suite() -> None:
    with pytest.raises(AssertionError, match="are the same"):
        WORKER_CHECKS["workers"](CapturedGenerator)
    WORKER_CHECKS["workers"](ADAPTERS["Collate"])
