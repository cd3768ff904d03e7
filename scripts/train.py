"""Train one configuration: `python -m scripts.train dataset=airfoil model=fcn3 method=cmixup seed=0`.

`seeds=0..9` trains several seeds as one stack; `-m` sweeps: `method.bandwidth=0.1,1,10 'seed=range(0,3)'`.
"""

from __future__ import annotations

import json
import os
import sys

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from cmixup.errors import InputError
from scripts.config import CONFIG_DIR, TUNED, compose_train, tuned_overrides
from scripts.progress import Board
from scripts.run import Diverged, Job, execute, plan

# Bandwidths under which C-Mixup is another method.
NO_EFFECT = ("self-pairing only: this is ERM", "indistinguishable from mixup")


def label(job: Job) -> str:
    """Return a job in a few words."""
    options = " ".join(f"{key}={value}" for key, value in job.options.items())
    parts = [job.plain["dataset"]["name"], job.plain["method"]["name"], job.plain["preset"], options]
    return " ".join(part for part in parts if part)


def warnings(job: Job) -> list[str]:
    """Return a line for each bandwidth among a job's finished runs under which its method is another one."""
    paths = [job.run_folder(seed) / "report.json" for seed in job.seeds]
    reports = [json.loads(path.read_text()) for path in paths if path.is_file()]
    found = {(r["bandwidth"], r["verdict"]) for r in reports if r["verdict"] in NO_EFFECT}
    return [f"warning: {label(job)}: bandwidth {bandwidth:g}: {verdict}" for bandwidth, verdict in sorted(found)]


def run(cfg: DictConfig) -> None:
    """Plan, train what is not done, and print one line a seed."""
    job = plan(cfg)
    epochs = job.settings.epochs
    with Board(epochs if job.pending else 0, f"training {len(job.pending)} seeds") as board:
        execute(job, lambda epoch, rows: board.epoch(label(job), epoch, epochs, rows[0]))
    for line in warnings(job):
        print(line, file=sys.stderr)
    for seed in job.seeds:
        folder = job.run_folder(seed)
        report = json.loads((folder / "report.json").read_text())
        scores = "  ".join(f"{name} {value:.4f}" for name, value in report["scores"]["test"].items())
        state = "" if seed in job.pending else "  (already done; rerun=true trains it again)"
        print(f"{label(job)} seed {seed}: test {scores}  -> {folder}{state}")


@hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name="train")
def main(cfg: DictConfig) -> None:
    """Entry point; errors that a user can mend are one line, without a traceback."""
    with user_errors():
        run(compose_train(HydraConfig.get().overrides.task) if cfg.preset == TUNED else cfg)


class user_errors:  # noqa: N801 - reads as a statement
    """Turn errors that a user can mend into one line on stderr and exit code 2."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (InputError, OSError, Diverged)) and not os.environ.get("CMIXUP_TRACEBACK"):
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(2) from None


def spell_out(words: list[str]) -> list[str]:
    """Return a command line that asks Hydra to show a configuration, with the values that preset `tuned` stands for."""
    if {"--cfg", "-c"} & set(words) and f"preset={TUNED}" in words:
        first = next(k for k, word in enumerate(words) if "=" in word)
        cfg = compose_train([word for word in words if "=" in word and word != f"preset={TUNED}"])
        return [*words[:first], *tuned_overrides(cfg), *words[first:]]
    return words


if __name__ == "__main__":
    with user_errors():
        sys.argv[1:] = spell_out(sys.argv[1:])
    main()
