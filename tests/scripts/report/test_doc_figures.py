"""The pictures of docs/bandwidth.md: each is what the code above it draws, and can be read."""

import pytest

from scripts.report.doc_figures import DRAWN, ROOT, doc_figures
from scripts.report.figures import stale_figures
from tests.robustness.pictures import faults_of

PAGE = (ROOT / "docs" / "bandwidth.md").read_text()


def test_every_block_has_its_picture():
    paths = [path for _, path in DRAWN.findall(PAGE)]
    assert len(set(paths)) == PAGE.count("figure, ") == 4
    assert all((ROOT / "docs" / path).is_file() for path in paths)


@pytest.mark.slow
def test_a_picture_is_what_the_code_above_it_draws():
    drawn = doc_figures()
    assert stale_figures(drawn) == []
    assert faults_of(drawn) == []
