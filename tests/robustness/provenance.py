"""Every way found in which a checkout can say that it is a commit that it is not: no such run is published."""

import json
import os
import py_compile
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import torch

from cmixup.errors import InputError
from scripts.driver import provenance
from scripts.driver.provenance import CARRIED, check_committed, note_commit, run_environment
from tests.robustness.base import MOST, Trial, note_progress

WHAT = (
    "a checkout that is edited, carried or placed so that Git says otherwise: a run of it is refused where runs are "
    "published, and one of a clean checkout is not"
)
IDENTITY = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
SOURCE, EDITED = "RATE = 1.0\n", "RATE = 2.0\n"
FILES = {"cmixup/mix.py": SOURCE, "datasets/a.py": SOURCE, "models/b.py": SOURCE, "scripts/c.py": SOURCE,
         "configs/d.yaml": "rate: 1\n", ".gitignore": "outputs/\n__pycache__/\n"}  # fmt: skip


def git(code: Path, *command: str) -> str:
    """Run git in a folder, whatever the environment says."""
    done = subprocess.run(["git", "-C", str(code), *IDENTITY, *command], capture_output=True, text=True, check=True,
                          env=provenance.git_environment())  # fmt: skip
    return done.stdout.strip()


def checkout(code: Path) -> Path:
    """Make a repository of a few sources, all committed."""
    for name, text in FILES.items():
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(text)
    git(code.parent, "init", "--quiet", str(code))
    commit(code)
    return code


def commit(code: Path) -> None:
    """Commit everything."""
    git(code, "add", "--all")
    git(code, "commit", "--quiet", "--message", "all")


def edit(code: Path) -> None:
    """Change a source."""
    (code / "cmixup/mix.py").write_text(EDITED)


def _staged(code: Path) -> None:
    edit(code)
    git(code, "add", "--all")


def _bytecode(code: Path) -> None:
    """Compile an edited source so that Python does not look at the source, and put the committed one back."""
    edit(code)
    py_compile.compile(str(code / "cmixup/mix.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    (code / "cmixup/mix.py").write_text(SOURCE)


def _index_says_unchanged(flag: str) -> Callable[[Path], None]:
    def lie(code: Path) -> None:
        git(code, "update-index", flag, "cmixup/mix.py")
        edit(code)

    return lie


def _same_size_and_time(code: Path) -> None:
    """Let Git compare size and second alone, as some configurations do."""
    path = code / "cmixup/mix.py"
    git(code, "config", "core.checkStat", "minimal")
    os.utime(path, (1e9, 1e9))
    git(code, "update-index", "--refresh")
    time.sleep(0.01)
    edit(code)
    os.utime(path, (1e9, 1e9))


def _filter(code: Path) -> None:
    """Let a filter turn every source into the committed one when Git looks."""
    (code / ".git/info/attributes").write_text("*.py filter=lie\n")
    git(code, "config", "filter.lie.clean", "printf 'RATE = 1.0\\n'")
    edit(code)


def _ignored(where: str) -> Callable[[Path], None]:
    def lie(code: Path) -> None:
        (code / where).write_text("mine.py\n" if where != ".gitignore" else FILES[".gitignore"] + "mine.py\n")
        (code / "cmixup/mine.py").write_text(EDITED)

    return lie


def _ignored_in_a_commit(code: Path) -> None:
    (code / ".gitignore").write_text("mine.py\n")
    commit(code)
    (code / "datasets/mine.py").write_text(EDITED)


def _replaced(code: Path) -> None:
    """Let another commit stand in the place of HEAD."""
    before = git(code, "rev-parse", "HEAD")
    edit(code)
    commit(code)
    now = git(code, "rev-parse", "HEAD")
    git(code, "reset", "--quiet", "--soft", before)
    git(code, "replace", before, now)


def _work_tree(code: Path) -> None:
    """Let the repository look at another, clean folder."""
    clean = shutil.copytree(code, code.parent / "clean", ignore=shutil.ignore_patterns(".git"))
    git(code, "config", "core.worktree", str(clean))
    edit(code)


def _carried(code: Path) -> None:
    note_commit(code)
    shutil.rmtree(code / ".git")
    edit(code)


def _carried_by_hand(code: Path) -> None:
    (code / CARRIED).write_text(json.dumps({"commit": git(code, "rev-parse", "HEAD"), "code": "0" * 64}))
    shutil.rmtree(code / ".git")


def _inside(edited: bool) -> Callable[[Path], None]:
    def lie(code: Path) -> None:
        """Lie below an ignored folder of somebody else's repository, without one of its own."""
        shutil.rmtree(code / ".git")
        (code.parent / ".gitignore").write_text(f"{code.name}\n")
        git(code.parent, "init", "--quiet")
        commit(code.parent)
        if edited:
            edit(code)

    return lie


def _pointed(name: str) -> Callable[[Path], None]:
    def lie(code: Path) -> None:
        """Set a variable by which hooks name a repository, to a clean one."""
        other = checkout(code.parent / "other")
        edit(code)
        os.environ[name] = str({"GIT_DIR": other / ".git", "GIT_INDEX_FILE": other / ".git/index"}.get(name, other))

    return lie


#: What is done to a checkout whose runs may not be published.
LIES: dict[str, Callable[[Path], object]] = {
    "edited": edit,
    "edited and staged": _staged,
    "edited configuration": lambda code: (code / "configs/d.yaml").write_text("rate: 2\n"),
    "untracked source": lambda code: (code / "models/mine.py").write_text(EDITED),
    "assumed unchanged": _index_says_unchanged("--assume-unchanged"),
    "left out of the worktree": _index_says_unchanged("--skip-worktree"),
    "same size and time": _same_size_and_time,
    "a filter": _filter,
    "ignored by .gitignore": _ignored(".gitignore"),
    "ignored by info/exclude": _ignored(".git/info/exclude"),
    "ignored by a commit": _ignored_in_a_commit,
    "a replaced commit": _replaced,
    "bytecode of an edited source": _bytecode,
    "another work tree": _work_tree,
    "carried and edited": _carried,
    "carried with a made-up digest": _carried_by_hand,
    "inside another repository": _inside(edited=False),
    "inside another repository, edited": _inside(edited=True),
    "no repository": lambda code: shutil.rmtree(code / ".git"),
    **{name: _pointed(name) for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")},
}
#: What is done to a checkout whose runs may be published.
TRUTHS: dict[str, Callable[[Path], object]] = {
    "clean": lambda _: None,
    "clean, with runs": lambda code: (code / "outputs").mkdir(),
    "clean, in a hook": lambda _: os.environ.update(GIT_DIR="/nowhere"),
}


def attempt(name: str, folder: Path) -> str:
    """Make a checkout, do something to it and try to publish a run of it; return what was wrong, or an empty text."""
    shutil.rmtree(folder, ignore_errors=True)
    code = checkout(folder / "code")
    publisher = Path(shutil.copytree(code, folder / "publisher"))
    before = dict(os.environ)
    try:
        ({**LIES, **TRUTHS}[name])(code)
        provenance.code_digest.cache_clear()
        said = run_environment(torch.device("cpu"), code)
        for where in (code, publisher):  # that which made it, and a clean one that holds the commit
            try:
                check_committed({"run": said}, where)
            except InputError as error:
                if name in TRUTHS:
                    return f"{name}: refused: {error}"
            else:
                if name in LIES:
                    return f"{name}: published as commit {said['commit'][:8]}, dirty {said['dirty']}"
    finally:
        os.environ.clear()
        os.environ.update(before)
    return ""


def run(count: int, seed: int, folder: Path) -> Trial:
    """Try `count` ways, all in turns."""
    began, names, failures = time.perf_counter(), [*LIES, *TRUTHS], list[str]()
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(count):
        failures += [line for line in [attempt(names[(k + seed) % len(names)], folder / "way")] if line]
        note_progress(folder, k + 1, count)
    notes = f"{len(LIES)} lies and {len(TRUTHS)} truths in turns: {', '.join(names)}"
    return Trial("provenance", WHAT, count, count - len(failures), tuple(failures[:MOST]),
                 time.perf_counter() - began, notes)  # fmt: skip
