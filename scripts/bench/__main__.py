"""Measure speed into results/benchmarks: `python -m scripts.bench NAME key=value`; `short=1` only tries everything.

  train      training against a straightforward loop
  sampling   partner sampling against the original's way: set-up, draws and memory over N
  partners   the choice of the sampling algorithm, and C-Mixup in a batch
  kernels    an AMD machine's kernels beside those of Intel
  estimators the default CMixupRegressor beside the defaults of others
  ablation   what each part of that default is worth
  intervals  how many labels its intervals hold, and how wide they are

Example: python -m scripts.bench train
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from scripts.bench import ablation, estimators, intervals, kernels, partners, sampling, train
from scripts.config.arguments import parse_command
from scripts.driver.cli import user_errors

MODULES = (train, sampling, partners, kernels, estimators, ablation, intervals)
BENCHMARKS = {module.__name__.rpartition(".")[2]: module for module in MODULES}


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        benchmark, given = parse_command(argv, BENCHMARKS, __doc__)
        torch.set_num_threads(1)
        benchmark.run(given)


if __name__ == "__main__":
    main()
