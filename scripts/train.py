"""Train one configuration: `python -m scripts.train dataset=airfoil model=fcn3 method=cmixup seed=0`.

`seeds=0..9` trains several seeds as one stack; `-m` sweeps: `method.bandwidth=0.1,1,10 'seed=range(0,3)'`. A job of a
sweep that fails is named at the end, and the others go on. What Optuna and other sweepers get is the validation score
that selects checkpoints, the mean over seeds.
"""

from __future__ import annotations

import math
import sys

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from scripts.driver.cli import guarded, in_sweep, label, user_errors, warnings
from scripts.driver.compose import CONFIG_DIR, compose_train, is_tuned, tuned_overrides
from scripts.driver.devices import device_word, tell, together
from scripts.driver.execute import execute, train_along
from scripts.driver.job import Job, plan
from scripts.driver.progress import ProgressDisplay
from scripts.driver.runs import read_report


def run(cfg: DictConfig) -> float:
    """Plan, train what is not done, and print one line a seed.

    Returns:
        The validation score that selects checkpoints, the mean over the seeds.
    """
    cfg.device = device_word(cfg.device)
    job = plan(cfg)
    with together(str(job.device)) as rank:
        if rank:
            train_along(job)
            return math.nan
        score = lead(job)  # where it fails, torchrun ends the others
        tell(None)
        return score


def lead(job: Job) -> float:
    """Train a planned job, write it and print it; see `run`."""
    epochs = job.settings.epochs
    with ProgressDisplay(epochs if job.pending else 0, f"training {len(job.pending)} seeds") as board:
        if job.pending:
            board.begin(label(job))
        execute(
            job,
            lambda epoch, rows: board.epoch(label(job), epoch, epochs, rows[0]),
            lambda step, steps: board.search(label(job), step, steps),
        )
    for line in warnings(job):
        print(line, file=sys.stderr)
    reports = [read_report(job.run_folder(seed)) for seed in job.seeds]
    for seed, report in zip(job.seeds, reports, strict=True):
        folder = job.run_folder(seed)
        scores = "  ".join(f"{name} {value:.4f}" for name, value in report["scores"]["test"].items())
        state = "" if seed in job.pending else "  (already done; rerun=true trains it again)"
        print(f"{label(job)} seed {seed}: test {scores}  -> {folder}{state}")
    return math.fsum(r["scores"]["val"][r["selection"]] for r in reports) / len(reports)


@hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name="train")
def main(cfg: DictConfig) -> float:
    """Entry point; errors that a user can mend are one line, without a traceback, and end no sweep."""

    def one() -> float:
        return run(compose_train(HydraConfig.get().overrides.task) if is_tuned(cfg.preset) else cfg)

    with user_errors():
        return guarded(one) if in_sweep() else one()


def spell_out(words: list[str]) -> list[str]:
    """Return a command line that asks Hydra to show a configuration, with the values that a tuned preset stands for."""
    presets = [word.partition("=")[2] for word in words if word.startswith("preset=")]
    if {"--cfg", "-c"} & set(words) and presets and is_tuned(presets[-1]):
        first = next(k for k, word in enumerate(words) if "=" in word)
        cfg = compose_train([word for word in words if "=" in word and not word.startswith("preset=")])
        return [*words[:first], *tuned_overrides(cfg, presets[-1]), *words[first:]]
    return words


if __name__ == "__main__":
    with user_errors():
        sys.argv[1:] = spell_out(sys.argv[1:])
        main()
