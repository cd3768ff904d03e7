"""The site of `make docs`: every link and anchor leads somewhere, and no page asks another host for anything."""

import importlib.util
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from scripts.config.compose import CONFIG_DIR

ROOT = CONFIG_DIR.parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(importlib.util.find_spec, ("sphinx", "furo", "myst_parser", "sphinx_copybutton"))),
                       reason="needs pip install '.[docs]'"),
]  # fmt: skip
needs_chromium = pytest.mark.skipif(not shutil.which("chromium"), reason="needs Debian's chromium")


class Page(HTMLParser):
    """The links of a page, what it fetches as it opens, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors.add(given.get("id"))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag != "a" and (given.get("src") or given.get("href")):
            self.fetched.append(given.get("src") or given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", "-c", "docs", ".", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text()) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_every_link_and_anchor_leads_somewhere(pages):
    assert len(pages) > 200
    for path, page in pages.items():
        for link in (*page.links, *page.fetched):
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = Path(path.parent, unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), (path.name, link)
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, (path.name, link)


def test_no_page_asks_another_host(site, pages):
    foreign = [(path.name, url) for path, page in pages.items() for url in page.fetched if urlsplit(url).netloc]
    assert foreign == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text()), sheet


def test_every_page_of_results_ends_with_the_command_that_makes_it(site):
    """Or with the commit that has the command: benchmarks whose code is gone."""
    for path in (site / "results").rglob("*.html"):
        article = path.read_text().partition("<article")[2].partition("</article>")[0]
        last = re.split(r"<(?:p|li|tr)\b", article)[-1]
        command = re.search(r"<code\b.*(make|python)\b", last, re.DOTALL)
        assert command or (path.parent.name == "benchmarks" and "commit" in last), path.name


def test_a_number_leads_to_its_seeds(site):
    table = (site / "results/tables/table1_released.html").read_text()
    assert '<a href="../runs/table1/airfoil/cmixup.html">C-Mixup</a>' in table
    seeds = (site / "results/runs/table1/airfoil/cmixup.html").read_text().replace("<wbr>", "")
    released = seeds.partition("<h2>table1/airfoil/fcn3/cmixup/released</h2>")[2].partition("<h2>")[0]
    assert "<td>3.08256</td>" in released


def browse(address, profile, *more):
    """Return the page as Chromium has it after its scripts, and what they complained of."""
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        "--virtual-time-budget=2000",
        *more,
    ]
    done = subprocess.run(
        ["chromium", *flags, f"--user-data-dir={profile}", "--dump-dom", address],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@needs_chromium
def test_tables_sort_and_filter(tmp_path):
    """By a click on a title: numbers by value, what is none last; a search keeps the rows with all its words."""
    rows = [f"<tr><td>row {k}</td><td>{v}</td></tr>" for k, v in enumerate(["10.5 ± 2", "—", "-3", "9", *["0"] * 11])]
    script = """
        const rows = () => [...document.querySelectorAll("tbody tr")].filter(row => !row.hidden);
        const shown = () => rows().map(row => row.cells[1].textContent);
        const title = document.querySelectorAll("th button")[1], field = document.querySelector("input.filter");
        title.click(); const up = shown(); title.click(); const down = shown();
        field.value = "ROW -3"; field.dispatchEvent(new Event("input"));
        document.body.append(JSON.stringify([up[0], up.slice(-3), down.slice(0, 2), down.at(-1), shown()]));
    """
    table = f"<thead><tr><th>name</th><th>error</th></tr></thead><tbody>{''.join(rows)}</tbody>"
    page = tmp_path / "table.html"
    page.write_text(
        f"<article><table>{table}</table></article><script>{(ROOT / 'docs/site.js').read_text()}</script>"
        f"<script>addEventListener('load', () => {{{script}}})</script>"
    )
    dom, complaints = browse(f"file://{page}", tmp_path / "profile")
    assert '["-3",["9","10.5 ± 2","—"],["10.5 ± 2","9"],"—",["-3"]]' in dom
    assert complaints == []


@needs_chromium
@pytest.mark.parametrize("width", [390, 1300])
def test_only_tables_and_code_are_wider_than_the_window(site, pages, tmp_path, width):
    """Every page in a frame as wide as a phone or a laptop.

    It does not scroll sideways, no picture is missing, nothing comes from another host, and no script complains.
    """
    script = """
        const wrong = [];
        for (const page of pages) {
            const frame = document.createElement("iframe");
            frame.style.cssText = `width: ${width}px; height: 800px`;
            frame.src = page;
            const loaded = new Promise(done => frame.onload = done);
            document.body.append(frame);
            await loaded;
            const whole = frame.contentDocument.documentElement;
            const pictures = [...frame.contentDocument.images];
            const fetched = frame.contentWindow.performance.getEntriesByType("resource");
            if (whole.scrollWidth > whole.clientWidth || !pictures.every(each => each.naturalWidth)
                || !fetched.every(each => each.name.startsWith("file:"))) wrong.push(page);
            frame.remove();
        }
        document.body.textContent = `WRONG ${JSON.stringify(wrong)} of ${pages.length}`;
    """
    names = [f"file://{path}" for path in pages if path.parent.name != "study" or "runs" not in path.parts]
    frames = tmp_path / "frames.html"
    frames.write_text(
        f"<body><script>(async () => {{const pages = {names}, width = {width};{script}}})()</script></body>"
    )
    flags = "--allow-file-access-from-files", "--window-size=1400,900", "--virtual-time-budget=200000"
    dom, complaints = browse(f"file://{frames}", tmp_path / "profile", *flags)
    assert f"WRONG [] of {len(names)}" in dom
    assert complaints == []


@needs_chromium
@pytest.mark.parametrize(
    "page",
    ["README", "docs/index", "docs/api", "results/README", "results/study", "results/tables/table1_paper",
     "results/runs/table1/airfoil/erm"],
)  # fmt: skip
def test_a_browser_opens_it_without_a_complaint(site, tmp_path, page):
    dom, complaints = browse(f"file://{site}/{page}.html", tmp_path)
    assert "<h1" in dom
    assert complaints == []
