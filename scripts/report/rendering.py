"""Rendering: run the entries of the register whose sources, inputs or outputs changed, and say what is stale.

A file of code is the unit. Its digest covers itself and all that it imports, the versions of the libraries that draw,
configs/, what its entries read and what they made. Digests are kept in outputs/, so a fresh clone draws everything.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.claims.prose import MARKED, SPAN, UNSUPPORTED, fill_places, page_places, prose_pages
from scripts.records.experiment import RESULTS
from scripts.records.reads import read_once, watch_reads
from scripts.records.register import ENTRIES, FIGURES, FILES, PARTS, Entry
from scripts.records.seal import check_seal, seal_files
from scripts.report.figures import stale_figures, write_figures

ROOT = RESULTS.parent
STATE = ROOT / "outputs" / ".rendered.json"
LIBRARIES = ("matplotlib", "numpy", "pandas", "pillow", "scipy", "torch")
ENTRY = re.compile(r"^@(?:draws|writes|fills)\(", re.MULTILINE)
IMPORT = re.compile(r"^\s*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))", re.MULTILINE)
WATCHED = ("results", "docs", "examples", "configs")  # folders whose files count as read, and the pages at the top
ALWAYS = ("configs",)


class Rendered:
    """What a rendering made.

    Attributes:
        files: texts by path below the repository.
        figures: pictures by path below results/.
        parts: texts by page and place.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.figures: dict[str, Figure] = {}
        self.parts: dict[str, dict[str, str]] = {}


def find_modules() -> list[str]:
    """Return the files of scripts/ that have an entry, as names of modules."""
    found = sorted(path for path in (ROOT / "scripts").rglob("*.py") if ENTRY.search(path.read_text()))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found]


def run_entries(modules: list[str], kinds: tuple[str, ...] = (FIGURES, FILES, PARTS)) -> Iterator[tuple[str, Rendered]]:
    """Yield what the entries of each module make.

    Raises:
        InputError: an entry read a file that it does not declare.
    """
    with read_once():
        for module in modules:
            import_module(module)
            made = Rendered()
            for entry in (entry for entry in ENTRIES[module] if entry.kind in kinds):
                _run_entry(entry, made)
            yield module, made


def _run_entry(entry: Entry, made: Rendered) -> None:
    with watch_reads() as read:
        result = entry.make()
    inside = {path.relative_to(ROOT) for path in read if path.is_relative_to(ROOT)}
    watched = {p for p in inside if p.parts[0] in WATCHED or (len(p.parts) == 1 and p.suffix == ".md")}
    missed = {p for p in watched if p.suffix != ".py" and not _is_declared(p, (*entry.reads, *ALWAYS))}
    if missed:
        where = f"{entry.make.__module__}.{entry.make.__name__}"
        raise InputError(f"{where} reads {', '.join(sorted(map(str, missed)))}, which its entry does not declare")
    if entry.kind == FIGURES:
        made.figures |= result
    elif entry.kind == FILES:
        made.files |= {f"{RESULTS.name}/{path}": text for path, text in result.items()}
    else:
        for page, parts in result.items():
            made.parts.setdefault(page, {}).update(parts)


def _is_declared(path: Path, reads: tuple[str, ...]) -> bool:
    return any(
        Path(one) in path.parents or (path.match(one) and len(path.parts) == one.count("/") + 1) for one in reads
    )


def run_all(*kinds: str) -> Rendered:
    """Return what all entries of some kinds make."""
    every = Rendered()
    for _, made in run_entries(find_modules(), kinds):
        every.files |= made.files
        every.figures |= made.figures
        for page, parts in made.parts.items():
            every.parts.setdefault(page, {}).update(parts)
    return every


def render_changed(*, everything: bool = False) -> list[str]:
    """Write what changed since the last rendering, or everything; return the modules that were run.

    Raises:
        InputError: an entry read what it does not declare, a place of a page has no part, or a part has no place.
    """
    modules = find_modules()
    known = {} if everything or not STATE.is_file() else json.loads(STATE.read_text())
    state = {m: known[m] for m in modules if m in known and known[m]["digest"] == _module_digest(m, known[m])}
    changed = [module for module in modules if module not in state]
    rendered = dict(run_entries(changed))
    for module, made in rendered.items():
        reads = sorted({one for entry in ENTRIES[module] for one in (*entry.reads, *ALWAYS)})
        outputs = [*made.files, *(f"{RESULTS.name}/{path}" for path in made.figures)]
        outputs += [f"{page}#{place}" for page, parts in made.parts.items() for place in parts]
        state[module] = {"reads": reads, "outputs": sorted(outputs)}
    every = {output.partition("#")[0] for own in state.values() for output in own["outputs"]}
    drawn = {path.removeprefix(f"{RESULTS.name}/") for path in every if path.startswith(f"{RESULTS.name}/")}
    check_seal(RESULTS, drawn)  # what is drawn from must be what was published
    for made in rendered.values():
        for path, text in made.files.items():
            write_atomically(ROOT / path, text)
        for page, parts in made.parts.items():
            write_atomically(ROOT / page, fill_places((ROOT / page).read_text(), parts))
        write_figures(made.figures)
    seal_files(RESULTS, drawn)
    _file_digest.cache_clear()
    _page_texts.cache_clear()
    for module in changed:
        state[module]["digest"] = _module_digest(module, state[module])
    check_places({output for own in state.values() for output in own["outputs"] if "#" in output})
    write_atomically(STATE, json.dumps(state, indent=1) + "\n")
    return changed


def check_places(parts: set[str]) -> None:
    """Raise `InputError` unless every place of every page has a part, `page#place`, and every part has a place."""
    every = {str(path.relative_to(ROOT)) for path in prose_pages()} | {part.partition("#")[0] for part in parts}
    there = {f"{page}#{place}" for page in every for place in page_places((ROOT / page).read_text())}
    if wrong := sorted(there ^ parts):
        raise InputError(f"every place of a page must have its part, and every part a place: not so {', '.join(wrong)}")


def stale_files(root: Path = ROOT) -> list[str]:
    """Return which texts below `root` are not what the entries render, then the claims that the records fail."""
    made = run_all(FILES, PARTS)
    check_places({f"{page}#{place}" for page, parts in made.parts.items() for place in parts})
    whole = {str(path.relative_to(ROOT)): path.read_text() for path in prose_pages()}
    texts = made.files | {page: fill_places(text, made.parts.get(page, {})) for page, text in whole.items()}
    stale = [name for name, text in texts.items() if not (root / name).is_file() or (root / name).read_text() != text]
    return stale + [f"claim {name}" for text in texts.values() for name in UNSUPPORTED.findall(text)]


def stale_pictures() -> list[str]:
    """Return which pictures are not what the entries draw."""
    return stale_figures(run_all(FIGURES).figures)


def failing_claims() -> list[str]:
    """Return the claims of which a page says that the records no longer support them."""
    return [name for path in prose_pages() for name in UNSUPPORTED.findall(path.read_text())]


def _module_digest(module: str, about: Mapping[str, Any]) -> str:
    parts = [version(one) for one in LIBRARIES]
    parts += [_file_digest(path) for path in sorted(imported_files(module))]
    for one in about["reads"]:
        found = (
            [ROOT / one]
            if (ROOT / one).is_file()
            else (ROOT / one).rglob("*")
            if (ROOT / one).is_dir()
            else ROOT.glob(one)
        )
        parts += [f"{path} {_file_digest(path)}" for path in sorted(p for p in found if p.is_file())]
    for output in about["outputs"]:
        page, _, place = output.partition("#")
        parts.append(_page_texts(page).get(place, "") if place else _file_digest(ROOT / page))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@functools.cache
def _page_texts(page: str) -> dict[str, str]:
    """Return the text of every place of a page, its blanks and line ends as one blank."""
    text = (ROOT / page).read_text() if (ROOT / page).is_file() else ""
    found = dict(SPAN.findall(text)) | {name: part for _, name, part, _ in MARKED.findall(text)}
    return {name: " ".join(part.split()) for name, part in found.items()}


@functools.cache
def _module_imports(path: Path) -> list[Path]:
    names = set()
    for source, imported, plain in IMPORT.findall(path.read_text()):
        names |= {plain} if plain else {source, *(f"{source}.{one}" for one in re.findall(r"\w+", imported))}
    files = [ROOT / Path(*name.split(".")) for name in names]
    return [one for file in files for one in (file.with_suffix(".py"), file / "__init__.py") if one.is_file()]


def imported_files(module: str) -> set[Path]:
    """Return a module's file and all files of the repository that it imports, directly or not."""
    todo, found = [ROOT / f"{module.replace('.', '/')}.py"], set[Path]()
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += _module_imports(path)
    return found
