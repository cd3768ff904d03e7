"""Raw files: `python -m scripts.data status` lists them, `fetch [airfoil,no2]` gets and verifies them."""

from __future__ import annotations

import argparse
import os
import sys

from rich import box
from rich.console import Console
from rich.table import Table

from datasets.common.fetch import FetchError, data_root, fetch, present
from scripts.driver.cli import user_errors
from scripts.driver.compose import names
from scripts.driver.config import dataset_class


def status() -> None:
    """Print what is here, what can be fetched and from where, with sizes and licences."""
    mirror = os.environ.get("CMIXUP_MIRROR") or "none"
    print(f"data root (CMIXUP_DATA): {data_root()}\nmirror (CMIXUP_MIRROR): {mirror}")
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("dataset", "file (the first that is there is used)", "kB", "state", "licence"):
        table.add_column(column, justify="right" if column == "kB" else "left", overflow="fold")
    for name in names("dataset"):
        files, folders = dataset_class(name).files, dataset_class(name).folders
        for folder in folders:
            table.add_row(
                name, f"{folder.path}/", "", "here" if folder.present() else f"by hand: {folder.page}", folder.licence
            )
        if not files and not folders:
            table.add_row(name, f"({dataset_class(name).place})", "", "", "")
        for alternatives in files:
            for file in alternatives:
                state = "here" if present(file) else "can be fetched" if file.urls else f"by hand: {file.page}"
                table.add_row(name, file.path, f"{file.size / 1e3:,.0f}", state, file.licence)
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def fetch_all(chosen: list[str]) -> None:
    """Fetch and verify the files of the chosen datasets; the others are got even if one fails.

    Raises:
        FetchError: at the end, with everything that could not be had.
    """
    problems = []
    for name in chosen:
        for folder in dataset_class(name).folders:
            try:
                print(f"{name}: {folder.find()} (no checksum of it is public)")
            except FetchError as error:
                problems.append(str(error))
        for alternatives in dataset_class(name).files:
            try:
                file, path = fetch(*alternatives)
            except FetchError as error:
                problems.append(str(error))
            else:
                print(f"{name}: {path} ({file.size / 1e3:,.0f} kB, SHA-256 verified)")
    if problems:
        raise FetchError("\n".join(problems))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.data", description=__doc__)
    parser.add_argument("action", choices=("status", "fetch"))
    parser.add_argument("datasets", nargs="?", default="", help="comma-separated; default: all that can be fetched")
    given = parser.parse_args(sys.argv[1:])
    with user_errors():
        if given.action == "status":
            status()
        else:
            fetchable = [n for n in names("dataset") if not dataset_class(n).folders]
            fetch_all([n for n in given.datasets.split(",") if n] or fetchable)


if __name__ == "__main__":
    main()
