"""Rendering: entries are found and run, and what is stale or has no place is named."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cmixup.errors import InputError
from scripts.records.published import read_once, remember_reads
from scripts.report import register, rendering


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one entry of each kind."""
    (tmp_path / "results").mkdir()
    (tmp_path / "README.md").write_text('By hand, <span id="one">old</span>.\n')
    monkeypatch.setattr(rendering, "ROOT", tmp_path)
    monkeypatch.setattr(rendering, "find_modules", lambda: ["made"])
    monkeypatch.setattr(rendering, "import_module", lambda _: None)
    monkeypatch.setattr(rendering, "write_figures", lambda figures: [(tmp_path / name).touch() for name in figures])
    entries = [
        register.Entry(register.FIGURES, lambda: {"a.png": Figure()}),
        register.Entry(register.FILES, lambda: {"a.md": "made\n"}),
        register.Entry(register.PARTS, lambda: {"README.md": {"one": "new"}}),
    ]
    monkeypatch.setattr(rendering, "ENTRIES", {"made": entries})
    return tmp_path


def test_everything_is_written_and_then_nothing_is_stale(root: Path) -> None:
    assert rendering.stale_texts(root) == ["results/a.md", "README.md"]
    assert rendering.render_everything() == []
    assert (root / "results/a.md").read_text() == "made\n"
    assert (root / "README.md").read_text() == 'By hand, <span id="one">new</span>.\n'
    assert (root / "a.png").is_file()
    assert rendering.stale_texts(root) == []


def test_a_sentence_that_no_longer_holds_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "**[one: the records no longer support this sentence: why]**"
    entry = register.Entry(register.PARTS, lambda: {"README.md": {"one": text}})
    monkeypatch.setattr(rendering, "ENTRIES", {"made": [entry]})
    assert rendering.render_everything() == ["one"]
    assert rendering.stale_texts(root) == ["sentence one"]


def test_a_page_that_no_entry_fills_is_an_error(root: Path) -> None:
    (root / "OTHER.md").write_text('<span id="two"></span>\n')
    with pytest.raises(InputError, match=r"OTHER.md: no entry fills two"):
        rendering.stale_texts(root)


def test_a_remembered_value_is_computed_once_for_a_rendering() -> None:
    asked = []

    @remember_reads
    def value(more: str) -> str:
        asked.append(more)
        return more

    with read_once():
        assert [value("b"), value("b"), value("c")] == ["b", "b", "c"]
        assert asked == ["b", "c"]
    assert (value("b"), value("b"), asked[2:]) == ("b", "b", ["b", "b"])


def test_every_entry_of_the_project_is_found() -> None:
    found = rendering.find_modules()
    assert {"scripts.report.sentences_tables", "scripts.report.theory"} <= set(found)
