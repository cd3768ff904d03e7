"""C-Mixup whose bandwidth halves when validation stalls."""

from __future__ import annotations

from typing import Any

from cmixup.errors import check_count
from cmixup.methods.mix import Mix
from cmixup.pairing.label import LabelDistance


class Halving(Mix):
    """Halves the bandwidth once validation has not improved for `patience` epochs; other arguments as for `Mix`."""

    pairing: LabelDistance

    def __init__(self, *args: Any, patience: int = 5, **more: Any):
        super().__init__(*args, **more)
        self.patience, self.best, self.stalled = check_count("patience", patience, 1), float("inf"), 0

    def end_epoch(self, epoch: int, error: float) -> None:
        """Count the epochs without a lower error, and halve the bandwidth in use when they are enough."""
        self.stalled = 0 if error < self.best else self.stalled + 1
        self.best = min(self.best, error)
        if self.stalled == self.patience:
            self.pairing.set_bandwidth(self.pairing.sampler.bandwidth / 2)
            self.stalled = 0

    def get_extra_state(self) -> dict[str, Any]:
        """Return what epochs have taught; the pairing keeps its bandwidth itself."""
        return {"best": self.best, "stalled": self.stalled}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_extra_state`."""
        self.best, self.stalled = state["best"], state["stalled"]
