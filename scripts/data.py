"""Raw files: `status` lists them, `fetch` gets and verifies them.

Example: python -m scripts.data fetch datasets=airfoil,no2
"""

import os
from collections.abc import Sequence
from typing import Any

from cmixup.errors import check_choice
from datasets.common.fetch import FetchError, RawFolder, data_root, fetch, present, without_user
from scripts.config.arguments import parse_args
from scripts.config.compose import option_names
from scripts.config.parts import dataset_class
from scripts.driver.cli import user_errors

ACTIONS = ("status", "fetch")
KEYS = {
    "action": f"one of {', '.join(ACTIONS)}; may stand first and alone",
    "datasets": "names between commas; default all that can be fetched",
}


def print_status() -> None:
    """Print what is here, what can be fetched and from where, with sizes and licences."""
    mirror = without_user(os.environ.get("CMIXUP_MIRROR") or "none")
    print(f"data root (CMIXUP_DATA): {data_root()}\nmirror (CMIXUP_MIRROR): {mirror}")
    for name in option_names("dataset"):
        dataset = dataset_class(name)
        for folder in dataset.folders:
            state = "here" if folder.present() else f"by hand: {folder.page}"
            print(f"{name}: {folder.path}/ ({folder.licence}): {state}")
        for number, file in ((k, file) for files in dataset.files for k, file in enumerate(files)):
            state = "here" if present(file) else "can be fetched" if file.urls else f"by hand: {file.page}"
            print(f"{name}: {'or ' * (number > 0)}{file.path} ({file.size / 1e3:,.0f} kB, {file.licence}): {state}")
        if not dataset.files and not dataset.folders:
            print(f"{name}: {dataset.place}")


def fetch_all(chosen: list[str]) -> None:
    """Fetch and verify the files of the chosen datasets; files that are missing then are an error at the end."""
    problems = []
    for name in chosen:
        dataset = dataset_class(name)
        sources: list[Any] = [*dataset.folders, *dataset.files]
        for source in sources:
            try:
                if isinstance(source, RawFolder):
                    print(f"{name}: {source.find()} (no checksum of it is public)")
                else:
                    file, path = fetch(*source)
                    print(f"{name}: {path} ({file.size / 1e3:,.0f} kB, SHA-256 verified)")
            except FetchError as error:
                problems.append(str(error))
    if problems:
        raise FetchError("\n".join(problems))


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args = parse_args(argv, KEYS, __doc__, ["action"])
        action = check_choice("action", args.get("action", ""), ACTIONS)
        if action == "status":
            print_status()
        else:
            known = [n for n in option_names("dataset") if "datasets" in args or dataset_class(n).fetchable()]
            fetch_all(args.names("datasets", known))


if __name__ == "__main__":
    main()
