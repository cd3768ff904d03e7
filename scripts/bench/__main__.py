"""Measure into results/benchmarks: `python -m scripts.bench NAME key=value`; `short=1` writes nothing.

  train       training against a straightforward loop
  sampling    partner sampling against the original's way: set-up, draws and memory over N
  estimators  the default TabularRegressor beside the defaults of others, by their error

`python -m scripts.render` then fills results/estimators.md and results/speed.md.

Example: python -m scripts.bench train
"""

from collections.abc import Sequence

import torch

from scripts.bench import estimators, sampling, train
from scripts.config.arguments import parse_command
from scripts.driver.cli import user_errors

BENCHMARKS = {"train": train, "sampling": sampling, "estimators": estimators}


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        benchmark, args = parse_command(argv, BENCHMARKS, __doc__)
        torch.set_num_threads(1)
        benchmark.run(args)


if __name__ == "__main__":
    main()
