"""Run an analysis: `python -m scripts.analysis NAME key=value`; `NAME --help` lists the keys of each.

  invariance   how far a representation separates domains once the label is known, on finished runs of Table 3
  spurious     one ERM model of RCF-MNIST on test images in two colourings; trains other ratios of colour first
  task_errors  methods of Table 2 on the same test tasks, with paired intervals
  theory       the simulations of Theorems 1 to 3
  pictures     who is mixed with whom, as the paper's Figure 1, and RCF-MNIST in the colours of every split

Example: python -m scripts.analysis invariance preset=paper datasets=crime
"""

from collections.abc import Sequence

from scripts.analysis import invariance, pictures, spurious, task_errors, theory
from scripts.config.arguments import parse_command
from scripts.driver.cli import user_errors

ANALYSES = {
    "invariance": invariance, "spurious": spurious, "task_errors": task_errors, "theory": theory, "pictures": pictures,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        analysis, args = parse_command(argv, ANALYSES, __doc__)
        analysis.run(args)


if __name__ == "__main__":
    main()
