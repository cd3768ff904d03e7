"""Measure what no record says: `python -m scripts.measure NAME key=value`; `NAME --help` lists the keys of each.

  invariance   how far a representation tells domains apart once the label is known, on finished runs of Table 3
  spurious     one ERM model of RCF-MNIST on test images in two colourings; trains other ratios of colour first
  task_errors  methods of Table 2 on the same test tasks, with paired intervals
  theory       the simulations of Theorems 1 to 3
  pairs        a picture of who is mixed with whom, as the paper's Figure 1
  rcf_mnist    a picture of RCF-MNIST in the colours of every split

Example: python -m scripts.measure invariance preset=paper datasets=crime
"""

from __future__ import annotations

from collections.abc import Sequence

from scripts.config.arguments import parse_command
from scripts.driver.cli import user_errors
from scripts.measure import invariance, pairs, rcf_mnist, spurious, task_errors, theory

MEASUREMENTS = {
    "invariance": invariance, "spurious": spurious, "task_errors": task_errors, "theory": theory, "pairs": pairs,
    "rcf_mnist": rcf_mnist,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        measurement, words = parse_command(argv, MEASUREMENTS, __doc__)
        measurement.run(words)


if __name__ == "__main__":
    main()
