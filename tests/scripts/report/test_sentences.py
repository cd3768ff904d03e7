"""What fills the pages declares every page that it fills."""

from scripts.claims.prose import prose_pages
from scripts.report import rendering, sentences
from scripts.report.published_tables import made_by


def test_every_page_is_among_what_the_sentences_read() -> None:
    found = [path.relative_to(rendering.ROOT) for path in prose_pages()]
    assert found
    allowed = (*sentences.PAGES, *rendering.ALWAYS)
    assert [path for path in found if not rendering._is_declared(path, allowed)] == []
    assert not rendering._is_declared(found[0].with_suffix(".csv"), allowed)


def test_a_page_names_the_commands_that_make_it() -> None:
    assert made_by("table1", "paper").startswith(
        "\n`python -m scripts.reproduce table1 preset=paper` trains these runs"
    )
