"""Rendering: entries are found and run, and what is stale or has no place is named."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cmixup.errors import InputError
from scripts.report import rendering
from scripts.report.rendering import page_places, splice_page


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one entry of each kind."""
    (tmp_path / "results").mkdir()
    (tmp_path / "README.md").write_text('By hand, <span id="one">old</span>.\n')
    monkeypatch.setattr(rendering, "ROOT", tmp_path)
    monkeypatch.setattr(rendering, "find_modules", lambda: ["made"])
    monkeypatch.setattr(rendering, "import_module", lambda _: None)
    monkeypatch.setattr(rendering, "write_figures", lambda figures: [(tmp_path / name).touch() for name in figures])
    monkeypatch.setattr(rendering, "FIGURES", [lambda: {"a.png": Figure()}])
    monkeypatch.setattr(rendering, "FILES", [lambda: {"a.md": "made\n"}])
    monkeypatch.setattr(rendering, "PARTS", [lambda: {"README.md": {"one": "new"}}])
    return tmp_path


def test_everything_is_written_and_then_nothing_is_stale(root: Path) -> None:
    assert rendering.stale_texts(root) == ["results/a.md", "README.md"]
    rendering.render_everything()
    assert (root / "results/a.md").read_text() == "made\n"
    assert (root / "README.md").read_text() == 'By hand, <span id="one">new</span>.\n'
    assert (root / "a.png").is_file()
    assert rendering.stale_texts(root) == []


def test_a_page_that_no_entry_fills_is_an_error(root: Path) -> None:
    (root / "OTHER.md").write_text('<span id="two"></span>\n')
    with pytest.raises(InputError, match=r"OTHER.md: no entry fills two"):
        rendering.stale_texts(root)


def test_every_entry_of_the_project_is_registered() -> None:
    modules = rendering.find_modules()
    assert {"scripts.report.front_page", "scripts.report.paper.theory"} <= set(modules)


PAGE = """# Title

By hand, <span id="one">old
words</span>, `<span id="no-place">`.

| a | <span id="cell">x</span> |

- Item: <span id="item"></span>.

<!-- block:begin (who fills it) -->
old
<!-- block:end -->
"""


def test_parts_are_spliced_in() -> None:
    parts = {"one": "new words", "cell": "y", "item": "word", "block": "| a |"}
    assert page_places(PAGE) == ["one", "cell", "item", "block"]
    page = splice_page(PAGE, parts)
    assert 'By hand, <span id="one">new words</span>, `<span id="no-place">`.' in page
    assert '| a | <span id="cell">y</span> |' in page
    assert "<!-- block:begin (who fills it) -->\n| a |\n<!-- block:end -->" in page
    assert splice_page(page, parts) == page


@pytest.mark.parametrize("parts", [{"one": "a"}, {"one": "", "cell": "", "item": "", "block": "", "more": ""}])
def test_a_place_without_a_part_and_a_part_without_a_place_are_refused(parts: dict[str, str]) -> None:
    with pytest.raises(InputError, match="every place of a page must have its part"):
        splice_page(PAGE, parts)
