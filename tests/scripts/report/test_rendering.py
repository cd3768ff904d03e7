"""Rendering: entries are found, run when something changed, and held to what they declare."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cmixup.errors import InputError
from scripts.records import register
from scripts.records.reads import note_read, read_once, remember_reads, watch_reads
from scripts.report import rendering
from scripts.report.figures import write_figures

CODE = """from pathlib import Path
from matplotlib.figure import Figure
from scripts.shared import TEXT
from scripts.records.register import draws, fills, writes

ROOT = Path(__file__).parents[1]


@draws("results/a.csv")
def figures():
    drawn = Figure(figsize=(1, 1))
    drawn.text(0.5, 0.5, (ROOT / "results/a.csv").read_text())
    return {"figures/a.png": drawn}


@writes("results/*.csv")
def files():
    return {"a.md": TEXT + (ROOT / "results/a.csv").read_text()}


@fills("results")
def parts():
    return {"README.md": {"one": "said of " + (ROOT / "results/a.csv").read_text().strip()}}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with one file that has an entry of each kind."""
    for folder in ("scripts", "results/figures"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "scripts/made.py").write_text(CODE)
    (tmp_path / "scripts/shared.py").write_text('TEXT = "text "\n')
    (tmp_path / "results/a.csv").write_text("a\n")
    (tmp_path / "README.md").write_text('By hand, <span id="one">old</span>.\n')
    monkeypatch.setattr(rendering, "ROOT", tmp_path)
    monkeypatch.setattr(rendering, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(rendering, "STATE", tmp_path / "outputs/.rendered.json")
    monkeypatch.setattr(rendering, "prose_pages", lambda: [tmp_path / "README.md"])
    monkeypatch.setattr(register, "ENTRIES", {})
    monkeypatch.setattr(rendering, "ENTRIES", register.ENTRIES)
    monkeypatch.setattr(rendering, "import_module", lambda name: load(tmp_path, name))
    monkeypatch.setattr(rendering, "write_figures", lambda figures: write_figures(figures, tmp_path / "results"))
    yield tmp_path
    clear()


def clear() -> None:
    """A new process has read no file yet."""
    for known in (rendering._file_digest, rendering._page_texts, rendering._module_imports):
        known.cache_clear()


def load(root: Path, name: str) -> None:
    register.ENTRIES.pop(name, None)
    text = (root / f"{name.replace('.', '/')}.py").read_text()
    space = {"__name__": name, "__file__": str(root / "scripts/made.py")}
    text = text.replace("from scripts.shared import TEXT", (root / "scripts/shared.py").read_text())
    exec(compile(text, name, "exec"), space)  # noqa: S102


def render(*, everything: bool = False) -> list[str]:
    clear()
    return rendering.render_changed(everything=everything)


def test_only_what_changed_is_rendered_again(root: Path) -> None:
    assert render() == ["scripts.made"]
    assert (root / "results/a.md").read_text() == "text a\n"
    assert (root / "README.md").read_text() == 'By hand, <span id="one">said of a</span>.\n'
    assert (root / "results/figures/a.png").is_file()
    assert render() == []
    assert render(everything=True) == ["scripts.made"]
    for path, text in (
        ("results/a.csv", "b\n"), ("scripts/shared.py", 'TEXT = "other "\n'), ("results/a.md", "by hand"),
        ("results/b.csv", "new"), ("README.md", 'By hand, <span id="one">typed</span>.\n'),
        ("scripts/made.py", CODE + "\n"), ("results/figures/a.png", "no picture"),
    ):  # fmt: skip
        (root / path).write_text(text)
        assert render() == ["scripts.made"], path
        assert render() == []
    assert (root / "results/a.md").read_text() == "other b\n"
    (root / "README.md").write_text('Other prose, <span id="one">said of\nb</span>.\n')
    assert render() == []  # what is written by hand, and where a line ends, is nothing that an entry makes


def test_what_an_entry_reads_and_does_not_declare_is_an_error(root: Path) -> None:
    (root / "scripts/made.py").write_text(CODE.replace('@writes("results/*.csv")', '@writes("results/*.md")'))
    clear()
    with pytest.raises(InputError, match=r"^scripts.made.files reads results/a.csv, which its entry does not declare$"):
        rendering.render_changed()


@pytest.mark.parametrize(
    ("page", "wrong"),
    [('<span id="one">a</span> <span id="two">b</span>\n', "README.md#two"), ("no place\n", "README.md#one")],
)  # fmt: skip
def test_a_place_without_a_part_and_a_part_without_a_place_are_errors(root: Path, page: str, wrong: str) -> None:
    (root / "README.md").write_text(page)
    clear()
    with pytest.raises(InputError, match=f"not so {wrong}$"):
        rendering.render_changed()


def test_a_remembered_value_is_computed_once_and_its_files_are_read_by_all_who_ask(tmp_path: Path) -> None:
    path, asked = tmp_path / "a.txt", []
    path.write_text("a")

    @remember_reads
    def value(more: str) -> str:
        asked.append(more)
        return path.read_text() + more

    with read_once():
        for _ in range(2):
            with watch_reads() as read:
                assert value("b") == "ab"
            assert read == {path}
        assert value("c") == "ac"
        assert asked == ["b", "c"]
    assert (value("b"), value("b"), asked[2:]) == ("ab", "ab", ["b", "b"])
    with watch_reads() as outer:
        with watch_reads() as inner:
            note_read(path)
        path.write_text("written, not read")
        assert outer == inner == {path}


def test_every_entry_of_the_project_is_found() -> None:
    found = rendering.find_modules()
    assert {"scripts.report.table_figure", "scripts.report.sentences", "scripts.report.theory"} <= set(found)
    imported = rendering.imported_files("scripts.report.table_figure")
    assert rendering.ROOT / "scripts/report/figures.py" in imported
    assert rendering.ROOT / "scripts/records/stats.py" in imported
    assert rendering.ROOT / "scripts/report/theory.py" not in imported
