"""The chain of `make verify`: a line a link, the first that does not hold is named, and the root stands at the end."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts import verify
from scripts.records.seal import SEAL, seal_files, sealed_files


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.csv").write_text("1\n")
    seal_files(tmp_path / "results", first=True)
    return tmp_path / "results"


def chain(results: Path, monkeypatch: pytest.MonkeyPatch, *words: str, **links: Any) -> int:
    """Run all links, those named here instead of the real ones, and return the exit status."""
    for name in ("code", "data", "scores", "pages", "cells"):
        monkeypatch.setattr(verify, f"check_{name}", links.get(name, lambda *_: "as published"))
    try:
        verify.main(["all", f"results={results}", *words])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_a_chain_that_holds_ends_with_the_root(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chain(results, monkeypatch) == 0
    head, *lines, ended, root = capsys.readouterr().out.splitlines()
    assert head.startswith("6 links, about ")
    assert [line.split()[0] for line in lines] == list(verify.LINKS)
    assert ended.startswith("the chain holds")
    assert root == (results / "SEAL").read_text().splitlines()[0]


def raising(error: Exception) -> Any:
    def link(*_: Any) -> str:
        raise error

    return link


@pytest.mark.parametrize(
    ("name", "error"),
    [("code", verify.Broken("commit abc")), ("data", InputError("a.csv has SHA-256 1")), ("cells", verify.Broken("x"))],
)
def test_the_first_link_that_does_not_hold_is_named_and_ends_it(
    name: str, error: Exception, results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chain(results, monkeypatch, **{name: raising(error)}) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].split() == [name, *str(error).split()]
    assert printed.err == f"the link `{name}` does not hold\n"
    assert "root" not in printed.out.splitlines()[-1]


def test_a_flipped_bit_of_results_breaks_the_seal_first(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "a.csv").write_text("3\n")
    assert chain(results, monkeypatch) == 1
    printed = capsys.readouterr()
    assert f"DIFFERS {results / 'a.csv'} has other bytes than its seal" in printed.err
    assert printed.err.endswith("the link `seal` does not hold\n")
    (results / "SEAL").unlink()
    assert chain(results, monkeypatch) == 1
    assert "SEAL is not there" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["runs/table1/no2/erm.jsonl", "predictions/table1/no2/erm.xz", "figures/table1.png", "lr"]
)
def test_each_kind_of_published_file_that_changed_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The published files themselves, all of them links but for the one that changes."""
    named = "runs/table1/no2/erm.jsonl" if name == "lr" else name
    copy = tmp_path / "results"
    for each, path in {**sealed_files(verify.RESULTS), SEAL: verify.RESULTS / SEAL}.items():
        (copy / each).parent.mkdir(parents=True, exist_ok=True)
        (copy / each).symlink_to(path)
    whole = (copy / named).read_bytes()
    if name == "lr":
        changed = re.sub(rb'"lr": ?0\.01', b'"lr":0.02', whole, count=1)
    else:
        changed = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    assert changed != whole
    (copy / named).unlink()
    (copy / named).write_bytes(changed)
    assert chain(copy, monkeypatch) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"DIFFERS {copy / named} has other bytes than its seal: it changed without publish or render",
        "the link `seal` does not hold",
    ]


def test_stale_bytecode_and_edited_code_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"commit": "c0ffee", "dirty": False, "code": "1"}
    monkeypatch.setattr(verify, "run_environment", lambda _: about)
    monkeypatch.setattr(verify, "unchecked_bytecode", list)
    monkeypatch.setattr(verify, "stale_bytecode", list)
    assert verify.check_code() == "commit c0ffee, digest 1"
    monkeypatch.setattr(verify, "unchecked_bytecode", lambda: [Path("a.pyc")])
    monkeypatch.setattr(verify, "stale_bytecode", lambda: [Path("b.pyc")])
    about["dirty"] = True
    with pytest.raises(verify.Broken):
        verify.check_code()
    assert capsys.readouterr().err.splitlines() == [
        "DIFFERS code that was edited, or of unknown commit, so that what runs is not what was committed",
        "DIFFERS a.pyc is bytecode that Python runs without a look at its source",
        "DIFFERS b.pyc is bytecode of another source than stands beside it",
    ]


def test_raw_files_of_other_bytes_are_named_in_data_root_and_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = "a" * 64
    file = SimpleNamespace(path="a/b.csv", sha256=digest)
    kind = SimpleNamespace(files=((file,), (SimpleNamespace(path="c.csv", sha256=digest),)), folders=(1,))
    monkeypatch.setattr(verify, "option_names", lambda _: ["a"])
    monkeypatch.setattr(verify, "dataset_class", lambda _: kind)
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CMIXUP_MIRROR", str(tmp_path / "mirror"))
    assert verify.check_data() == ("0 raw files have their SHA-256; 2 are not here, 1 folders have no public checksum")
    for root in ("data", "mirror"):
        (tmp_path / root / "a").mkdir(parents=True)
        (tmp_path / root / "a" / "b.csv").write_bytes(b"raw")
    file.sha256 = verify.sha256_of(tmp_path / "data" / "a" / "b.csv")
    assert verify.check_data().startswith("2 raw files have their SHA-256; 1 are not here")
    (tmp_path / "mirror" / "a" / "b.csv").write_bytes(b"rau")
    with pytest.raises(verify.Broken):
        verify.check_data()
    assert str(tmp_path / "mirror" / "a" / "b.csv") in capsys.readouterr().err


def test_cells_are_compared_within_noise_where_torch_has_another_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = list[str]()

    def train_cells(_cells: Any, _workers: int, *, within_noise: str) -> tuple[int, dict[str, list[str]], str]:
        why.append(within_noise)
        return 1, {}, "1 of 1"

    monkeypatch.setattr(verify, "train_cells", train_cells)
    monkeypatch.setattr(verify, "published_cells", lambda *_: [])
    verify.main(["cells"])
    monkeypatch.setattr(verify.metadata, "version", lambda name: {"torch": "9.9+cpu", "numpy": "2.4.6"}[name])
    verify.main(["cells"])
    assert why[0] == ""
    assert why[1].startswith("packages: other: torch 9.9 (constraints.txt: ")
    assert "cells: 1 of 1" in capsys.readouterr().out
