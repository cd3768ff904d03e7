"""The site of `make docs`: every link and anchor leads somewhere, and no page asks another host for anything."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("sphinx", "furo", "myst_parser", "sphinx_copybutton", "latex2mathml")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(importlib.util.find_spec, NEEDED)), reason="needs pip install '.[docs]'"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", "-c", "docs", ".", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_link_of_the_built_pages_leads_somewhere_and_none_is_fetched_from_another_host(site: Path) -> None:
    pages = {path: path.read_text() for path in site.rglob("*.html") if "_static" not in path.parts}
    assert len(pages) > 20
    for path, text in pages.items():
        links = re.findall(r'<a\b[^>]*?\bhref="([^"]+)"', text)
        fetched = re.findall(r'<(?!a\b)\w+\b[^>]*?\b(?:src|href)="([^"]+)"', text)
        assert not [url for url in fetched if urlsplit(url).netloc], path.name
        for link in (*links, *fetched):
            parts = urlsplit(link)
            target = Path(path.parent, unquote(parts.path)).resolve() if parts.path else path
            assert parts.scheme or target.exists(), (path.name, link)
            if parts.fragment and target in pages:
                assert f'id="{unquote(parts.fragment)}"' in pages[target], (path.name, link)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text()), sheet
