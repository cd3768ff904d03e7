"""The end of a stack: its runs are marked as done together or not at all, whenever the process dies."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from cmixup.done import DONE
from cmixup.files import sync
from cmixup.training.checkpoint import RESUME_FILE
from scripts.driver.runs import mark_done

ENDED, PART = ".ended-", ".part"  # folders of stacks whose runs are being marked as done


def end_together(root: Path, folders: Sequence[Path]) -> None:
    """Mark runs that are whole as done, all or none, whatever happens: what was left of a stack would be another stack.

    A folder below `root` with an entry for each of them gets its name at once; `go_on_ending` does the rest, here or in
    a later process, and from then on nobody needs what was saved to go on from.
    """
    if len(folders) == 1 and not (folders[0] / RESUME_FILE).is_file():
        mark_done(folders[0])
        return
    entries = [_entry(root, folder) for folder in folders]
    ended = root / f"{ENDED}{hashlib.sha256(' '.join(entries).encode()).hexdigest()[:16]}"
    part = ended.with_name(ended.name + PART)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name in entries:
        (part / name).touch()
    sync(part)
    part.rename(ended)
    sync(root)
    go_on_ending(root, folders)


def go_on_ending(root: Path, folders: Sequence[Path]) -> None:
    """Mark those of these runs as done that `end_together` has decided on; the caller works on them alone."""
    if not any(root.glob(f"{ENDED}*")):
        return
    for folder in folders:
        for entry in root.glob(f"{ENDED}*/{_entry(root, folder)}"):
            if entry.parent.suffix == PART:  # whoever made it was killed before it had decided
                shutil.rmtree(entry.parent, ignore_errors=True)
                continue
            (folder / RESUME_FILE).unlink(missing_ok=True)
            if not (folder / DONE).is_file():
                mark_done(folder)
            entry.unlink()
            with contextlib.suppress(OSError):  # others are left
                entry.parent.rmdir()


def _entry(root: Path, folder: Path) -> str:
    return hashlib.sha256(folder.relative_to(root).as_posix().encode()).hexdigest()[:24]
