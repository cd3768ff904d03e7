"""Render everything that shows numbers of results/: tables, figures, and sentences of the pages.

No number that runs can change is typed by hand; a test compares the committed files with a fresh rendering. Where the
records lack a number, an error says which, and nothing is written. `make docs` makes one site of all pages.

python -m scripts.render
python -m scripts.render check=1
"""

from collections.abc import Sequence

from cmixup.errors import InputError
from scripts.config.arguments import parse_args
from scripts.driver.cli import user_errors
from scripts.records.experiment import RESULTS
from scripts.report import rendering

KEYS = {"check": "1 writes nothing, names the texts that are stale, and fails if any is; default 0"}


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args = parse_args(argv, KEYS, __doc__)
        if not args.switch("check"):
            rendering.render_everything()
            print(f"rendered into {RESULTS}")
        elif stale := rendering.stale_texts():
            raise InputError(f"stale, run python -m scripts.render: {', '.join(stale)}")
        else:
            print("every rendered text is what the records render to, and no number is missing")


if __name__ == "__main__":
    main()
