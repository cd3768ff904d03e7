"""What docs/data.md says of each dataset: its card, its files and their checksums, from the classes of datasets/."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator

from datasets.common.base import Dataset
from datasets.common.fetch import RawFile, RawFolder
from scripts.config.compose import option_names, part_file
from scripts.config.parts import dataset_class
from scripts.report.register import fills

PAGE = "docs/data.md"
FIELDS = ("Origin", "Shapes", "Licence", "Citation")  # of a class's docstring, in their order on the page
YOURS = ("csv", "rdataset")  # they read a table that the caller names, so they have no file of their own
FIELD = re.compile(r"(?<!\S)(Origin|y|x|Shapes|Licence|Citation): ")


@fills
def card_parts() -> dict[str, dict[str, str]]:
    """Return the parts of docs/data.md: `summary`, `cards` and `checksums`."""
    kinds = {name: dataset_class(name) for name in option_names("dataset") if name not in YOURS}
    return {
        PAGE: {
            "summary": "\n".join(summary_lines(kinds)),
            "cards": "\n\n".join(card_text(name, kind) for name, kind in kinds.items()),
            "checksums": "\n".join(["```text", *checksum_lines(kinds), "```"]),
        }
    }


def list_files(kind: type[Dataset]) -> Iterator[RawFile]:
    """Yield every file that a dataset may read, those that stand in for one another too."""
    yield from itertools.chain.from_iterable(kind.files)


def summary_lines(kinds: dict[str, type[Dataset]]) -> Iterator[str]:
    """Yield a table with a row for each dataset: title, size, licence and how it is got."""
    yield "| `dataset=` | title | raw files | licence | how to get it |"
    yield "| --- | --- | --- | --- | --- |"
    for name, kind in kinds.items():
        title = str(part_file("dataset", name).get("title", name))
        sources: list[RawFile | RawFolder] = [*list_files(kind), *kind.folders]
        licences = "; ".join(dict.fromkeys(source.licence for source in sources)) or kind.place.partition(", ")[2]
        yield f"| `{name}` | {title} | {describe_size(kind)} | {licences} | {describe_way(name, kind)} |"


def describe_size(kind: type[Dataset]) -> str:
    """Return how many files a dataset needs and their size; of files that replace one another the first counts."""
    needed = [alternatives[0] for alternatives in kind.files]
    if kind.folders:
        return "a folder"
    if not needed:
        return "none"
    size = sum(file.size for file in needed)
    count = f"{len(needed)} file" + ("s" if len(needed) > 1 else "")
    return f"{count}, {size / 1e3:,.0f} kB" if all(file.size for file in needed) else f"{count}, size not published"


def describe_way(name: str, kind: type[Dataset]) -> str:
    """Return what a person does to get a dataset."""
    if kind.folders:
        return f"by hand: [its page]({kind.folders[0].page.split()[0]})"
    if not kind.files:
        return kind.place.partition(", ")[0]
    if all(any(file.urls for file in alternatives) for alternatives in kind.files):
        return f"`make data DATASETS={name}`"
    return f"by hand: [its page]({kind.files[0][0].page.split()[0]})"


def card_text(name: str, kind: type[Dataset]) -> str:
    """Return the section of one dataset: what its class says of origin, shapes, split, licence and citation."""
    text = inspect.cleandoc(kind.__doc__ or "")
    head, _, rest = text.partition("\n\n")
    fields = dict(read_fields(rest.partition("\n\n")[0]))
    lines = [f"- **{field}**: {fields[field]}" for field in FIELDS if field in fields]
    return f"### `{name}`\n\n{head}\n\n" + "\n".join(lines)


def read_fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a card, `Origin: ...`, with their text on one line."""
    pieces = FIELD.split(" ".join(text.split()))
    yield from zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True)


def checksum_lines(kinds: dict[str, type[Dataset]]) -> Iterator[str]:
    """Yield a line for `sha256sum -c` of every file whose checksum is known, each once."""
    lines = {f"{file.sha256}  {file.path}" for kind in kinds.values() for file in list_files(kind) if file.sha256}
    yield from sorted(lines, key=lambda line: line.split()[1])
