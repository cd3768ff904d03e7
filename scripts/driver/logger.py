"""What a logger is told of runs while they train; wandb's stands in `wandb_logger`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scripts.driver.predictions import Parts


class NoLogger:
    """Keeps nothing; the run's folder has the curves anyway."""

    def start(self, seeds: Sequence[int]) -> None:
        """Begin with these seeds, which train together; all is well with their data, models and methods."""

    def epoch(self, epoch: int, rows: Sequence[Mapping[str, float]]) -> None:
        """Take one history row for each of the seeds that train."""

    def finish(self, seed: int, report: Mapping[str, Any], predictions: Parts | None) -> None:
        """Take a seed's report and, unless it failed, its predictions."""

    def close(self) -> None:
        """End."""
