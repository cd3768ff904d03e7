"""The mixing weight lambda."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cmixup.errors import check_between, check_choice, check_count, check_positive
from cmixup.sampling.inputs import Rng, numpy_rng


class Lam(ABC):
    """Draws the mixing weight of every example of an epoch."""

    @abstractmethod
    def draw(self, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return float32 weights in [0, 1], one an example, for groups of `sizes: (G,)` examples one after another.

        A group is a batch of rows, or a task's query.
        """


class Beta(Lam):
    """Draws lam ~ Beta(alpha, alpha), one an example (C-Mixup, Algorithm 1) or one a batch (released code).

    Args:
        alpha: concentration, above 0. Near 0 lambda is 0 or 1; large values gather it at 1/2.
        lam_per: "example" or "batch".
    """

    per: ClassVar[tuple[str, str]] = ("example", "batch")

    def __init__(self, alpha: float, lam_per: str = "example"):
        self.alpha = check_positive("alpha", alpha)
        self.lam_per = check_choice("lam_per", lam_per, self.per)

    def draw(self, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.lam_per == self.per[0]:
            return rng.beta(self.alpha, self.alpha, sum(sizes.tolist())).astype(np.float32)
        return np.repeat(rng.beta(self.alpha, self.alpha, len(sizes)).astype(np.float32), sizes)

    def sample(self, n: int, rng: Rng | None = None) -> Tensor:
        """Return weights `(n,)` float32 on the CPU for the examples of one batch: one each, or the same one n times.

        Args:
            n: number of examples, 0 or more.
            rng: NumPy or torch generator. None draws its seed from torch's own generator, which `torch.manual_seed`
                seeds and which a `DataLoader` seeds anew in every worker.
        """
        sizes = np.array([check_count("n", n)])
        return torch.from_numpy(self.draw(sizes, numpy_rng(torch.default_generator if rng is None else rng)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.alpha:g}, {self.lam_per!r})"


class TaskBeta(Beta):
    """Draws lam ~ Beta(alpha, alpha), one a "query" example (C-Mixup, Algorithm 2) or one a "task" (MetaMix)."""

    per: ClassVar[tuple[str, str]] = ("query", "task")

    def __init__(self, alpha: float, lam_per: str = "query"):
        super().__init__(alpha, lam_per)


class Constant(Lam):
    """Gives every example the same lambda, in [0, 1]; 1 keeps the example as it is, 0 takes its partner."""

    def __init__(self, value: float = 0.5):
        self.value = check_between("value", value, 0, 1)

    def draw(self, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.full(int(sizes.sum()), self.value, dtype=np.float32)
