"""The pictures of docs/bandwidth.md: each is drawn by the code above it."""

from scripts.report.figures import DRAWN, ROOT, doc_figures

PAGE = (ROOT / "docs" / "bandwidth.md").read_text()


def test_every_block_has_its_picture_and_draws_it():
    paths = [path for _, path in DRAWN.findall(PAGE)]
    assert len(set(paths)) == PAGE.count("figure, ") == 4
    assert all((ROOT / "docs" / path).is_file() for path in paths)
    assert list(doc_figures()) == paths
