"""The pictures of docs/gallery.md: each is what the code above it draws, and can be read."""

import pytest

from scripts.report.figures import stale_figures
from scripts.report.gallery import DRAWN, ROOT, gallery_figures
from tests.robustness.pictures import faults_of

PAGE = (ROOT / "docs" / "gallery.md").read_text()


def test_every_block_has_its_picture():
    paths = [path for _, path in DRAWN.findall(PAGE)]
    assert len(set(paths)) == PAGE.count("```python") == 8
    assert all((ROOT / "docs" / path).is_file() for path in paths)


@pytest.mark.slow
def test_a_picture_is_what_the_code_above_it_draws():
    drawn = gallery_figures()
    assert stale_figures(drawn) == []
    assert faults_of(drawn) == []
