"""The loggers of runs that train together, whichever logger each configuration names; wandb's is `wandb_logger`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scripts.driver.predictions import Parts


class Logger:
    """Hears of the seeds of one configuration while they train, and keeps nothing; `WandbLogger` does as it does."""

    def start(self, seeds: Sequence[int]) -> None:
        """Begin with these seeds, which train together; all is well with their data, models and methods."""

    def epoch(self, epoch: int, rows: Sequence[Mapping[str, float]]) -> None:
        """Take one history row for each of the seeds that train."""

    def finish(self, seed: int, report: Mapping[str, Any], predictions: Parts | None) -> None:
        """Take a seed's report and, unless it failed, its predictions."""

    def close(self) -> None:
        """End."""


class StackLogger:
    """The loggers of several jobs whose runs train as one stack, or one after another.

    Args:
        jobs: configuration, options and seeds of each; its members are all seeds of all jobs, in order.
    """

    def __init__(self, jobs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any], Sequence[int]]]):
        self._loggers = [make_logger(*job) for job in jobs]
        self._members = [
            (logger, seed) for logger, (_, _, seeds) in zip(self._loggers, jobs, strict=True) for seed in seeds
        ]
        self._training = range(0)

    def start(self, count: int) -> range:
        """Begin with the next `count` members, which train together; return their numbers."""
        self._training = range(self._training.stop, self._training.stop + count)
        for logger in self._loggers:
            if mine := [seed for one, seed in map(self._members.__getitem__, self._training) if one is logger]:
                logger.start(mine)
        return self._training

    def epoch(self, epoch: int, rows: Sequence[Mapping[str, float]]) -> None:
        """Take one history row for each of the members that train."""
        for logger in self._loggers:
            numbered = zip(self._training, rows, strict=True)
            if mine := [row for number, row in numbered if self._members[number][0] is logger]:
                logger.epoch(epoch, mine)

    def finish(self, number: int, report: Mapping[str, Any], predictions: Parts | None) -> None:
        """Take a member's report and, unless it failed, its predictions."""
        logger, seed = self._members[number]
        logger.finish(seed, report, predictions)

    def close(self) -> None:
        """End."""
        for logger in self._loggers:
            logger.close()


def make_logger(plain: Mapping[str, Any], options: Mapping[str, Any], seeds: Sequence[int]) -> Logger:
    """Return the logger that the configuration names."""
    if plain["logger"] == "none":
        return Logger()
    from scripts.driver.wandb_logger import WandbLogger

    found: Any = WandbLogger(plain, options, seeds)
    return found
