import threading

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from datasets.common import threads as module
from datasets.common.threads import in_threads


class Names(Dataset):
    """The names of the threads that a reader of four items uses."""

    def __getitem__(self, _: int) -> list[str]:
        return in_threads(lambda _: threading.current_thread().name, range(4))


@pytest.mark.parametrize("cores", [1, 3])
def test_threads_keep_the_order_and_pass_errors_on(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_CORES", cores)
    assert in_threads(lambda k: k * k, range(20)) == [k * k for k in range(20)]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda k: 1 // (k - 3), range(20))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_worker_of_a_data_loader_reads_in_one_thread(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_CORES", 3)
    loader = DataLoader(Names(), batch_size=None, sampler=[0], num_workers=workers, generator=torch.Generator())
    (used,) = loader
    assert any(name != "MainThread" for name in used) == (workers == 0)
