"""Where curves go: wandb (offline by default), or nowhere."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any


class NoLogger:
    """Keeps nothing; the run's folder has the curves anyway."""

    def start(self, seeds: Sequence[int]) -> None:
        """Begin with these seeds, which train together; all is well with their data, models and methods."""

    def epoch(self, epoch: int, rows: Sequence[Mapping[str, float]]) -> None:
        """Take one history row for each of the seeds that train."""

    def finish(self, seed: int, report: Mapping[str, Any]) -> None:
        """Take a seed's report."""

    def close(self) -> None:
        """End."""


class WandbLogger(NoLogger):
    """One wandb run a seed: curves, configuration, scores and the effective-partner fraction."""

    def __init__(self, plain: Mapping[str, Any], seeds: Sequence[int]):
        import wandb

        folder = Path(plain["out"]).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        group = "-".join([plain["dataset"]["name"], plain["method"]["name"], plain["preset"]])
        self._training: list[int] = []
        self._runs: dict[int, Any] = {}
        self._init = {
            seed: partial(
                wandb.init,
                project="cmixup",
                dir=str(folder),
                mode=mode,
                group=group,
                job_type=plain["experiment"],
                name=f"{group}-{seed}",
                config={**plain, "seed": seed},
                reinit="create_new",
                settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
            )
            for seed in seeds
        }

    def start(self, seeds: Sequence[int]) -> None:
        """Open a run for each seed."""
        self._training = list(seeds)
        self._runs |= {seed: self._init[seed]() for seed in seeds}

    def epoch(self, epoch: int, rows: Sequence[Mapping[str, float]]) -> None:
        """Log one history row for each of the seeds that train."""
        for seed, row in zip(self._training, rows, strict=True):
            self._runs[seed].log(dict(row), step=epoch)

    def finish(self, seed: int, report: Mapping[str, Any]) -> None:
        """Put scores and facts into the run's summary."""
        flat = {f"{split}/{name}": v for split, scores in report["scores"].items() for name, v in scores.items()}
        self._runs[seed].summary.update({**flat, **report["facts"], "best_epoch": report["best_epoch"]})

    def close(self) -> None:
        """Close every run."""
        for run in self._runs.values():
            run.finish()


class StackLogger:
    """The loggers of several jobs whose runs train as one stack, or one after another.

    Args:
        jobs: configuration and seeds of each; its members are all seeds of all jobs, in order.
    """

    def __init__(self, jobs: Sequence[tuple[Mapping[str, Any], Sequence[int]]]):
        self._loggers = [make_logger(plain, seeds) for plain, seeds in jobs]
        self._members = [
            (logger, seed) for logger, (_, seeds) in zip(self._loggers, jobs, strict=True) for seed in seeds
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

    def finish(self, number: int, report: Mapping[str, Any]) -> None:
        """Take a member's report."""
        logger, seed = self._members[number]
        logger.finish(seed, report)

    def close(self) -> None:
        """End."""
        for logger in self._loggers:
            logger.close()


def make_logger(plain: Mapping[str, Any], seeds: Sequence[int]) -> NoLogger:
    """Return the logger that the configuration names."""
    return WandbLogger(plain, seeds) if plain["logger"] == "wandb" else NoLogger()
