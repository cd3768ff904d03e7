"""The results as one HTML file: the numbers of the tables, a record behind each, and nothing from elsewhere."""

import html
import json
import math
import re
import shutil
import subprocess

import pytest

from scripts import render
from scripts.claims.evidence import Evidence
from scripts.records.experiment import experiments, load_experiment, make_table
from scripts.records.records import records_frame
from scripts.records.tables import difference_text, ours_text, paper_text
from scripts.report.results_page import cells, page
from tests.scripts.reports import report

MAP = "| a | b | see |\n| --- | --- | --- |\n| `make x` | **differs**: 1 < 2 | - |\n\n**State**: ..."


def reports() -> list[dict]:
    """Two methods on Airfoil, three seeds each, of two commits."""
    return [
        report(method=method, seed=seed, options={}, layer="input",
               run=f"table1/airfoil/fcn3/{method}/paper/seed={seed}",
               scores={"val": {"rmse": 2.0}, "test": {"rmse": base + seed / 8, "mape": 1.5}},
               commit=f"c{seed % 2}", checksums={"a.dat": "12ab"}, device="cpu: x", epochs=100)
        for method, base in (("erm", 2.75), ("cmixup", 2.875)) for seed in range(3)
    ]  # fmt: skip


def made(tmp_path) -> tuple[str, object]:
    records = records_frame(reports())
    experiment = load_experiment("table1")
    table = make_table(experiment, records, "paper")
    picture = tmp_path / "a picture.png"
    picture.write_bytes(b"\x89PNG")
    text = page(
        [(experiment, "paper", table)], records, reports(), Evidence(records), map_rows=MAP,
        figures={"a picture": picture},
    )  # fmt: skip
    return text, table


def published_page(tmp_path):
    """Call the command, and return where its page is."""
    render.main(["html", f"out={tmp_path}"])
    return tmp_path / "results.html"


def test_the_page_has_every_number_of_the_tables(tmp_path):
    text, table = made(tmp_path)
    (block,) = table.blocks
    shown = html.unescape(text)
    for row in block.cells.values():
        for cell in row.values():
            if cell.ours:
                assert f">{ours_text(cell)}</" in shown
            assert f">{paper_text(cell)}</td>" in shown
            assert f">{difference_text(cell)}</td>" in shown
    assert ">2.830 ± 0.187, n = 10</td>" in shown  # the authors' own code, of ERM
    assert "1 &lt; 2" in text  # the map, escaped


def test_every_method_leads_to_its_runs(tmp_path):
    text, _ = made(tmp_path)
    embedded = json.loads(re.search(r'id="cells">(.*?)</script>', text, re.DOTALL)[1])
    links = {html.unescape(link) for link in re.findall(r'class="run" href="#([^"]*)"', text)}
    assert links == set(embedded) == {f"table1/airfoil/fcn3/{m}/paper" for m in ("erm", "cmixup")}
    cell = embedded["table1/airfoil/fcn3/erm/paper"]
    assert cell["same"]["checksums"] == {"a.dat": "12ab"}
    assert "commit" not in cell["same"]  # the seeds' differ
    rows = [dict(zip(cell["columns"], seed, strict=True)) for seed in cell["seeds"]]
    assert [(r["seed"], r["test rmse"], r["commit"]) for r in rows] == [
        (0, 2.75, "c0"),
        (1, 2.875, "c1"),
        (2, 3.0, "c0"),
    ]


def test_a_point_a_seed_at_its_value(tmp_path):
    text, _ = made(tmp_path)
    found = re.findall(r'class="seed" cx="([\d.]+)"[^>]*><title>([^<]*)</title>', text)
    assert [title for _, title in found][:3] == ["ERM, seed 0: 2.75", "ERM, seed 1: 2.875", "ERM, seed 2: 3"]
    at = {title: float(x) for x, title in found}
    # Equal values stand at one place, and equal steps are equally wide.
    assert at["ERM, seed 1: 2.875"] == at["C-Mixup, seed 0: 2.875"]
    steps = [at["ERM, seed 1: 2.875"] - at["ERM, seed 0: 2.75"], at["ERM, seed 2: 3"] - at["ERM, seed 1: 2.875"]]
    assert math.isclose(*steps, abs_tol=0.11)


def test_nothing_comes_from_elsewhere_and_nothing_breaks_out(tmp_path):
    text, _ = made(tmp_path)
    assert not re.search(r"(src|href)=[\"'](?!#|data:)", text)
    assert "http" not in text
    assert "$" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # no placeholder is left
    ill = [report(notes=["</script><b>"], run="x/seed=0")]
    assert cells(ill)["x"]["same"]["notes"] == ["</script><b>"]
    records, experiment = records_frame(reports()), load_experiment("table1")
    table = make_table(experiment, records, "paper")
    written = page([(experiment, "paper", table)], records, ill, Evidence(records), map_rows=MAP, figures={})
    assert "</script><b>" not in written


def test_the_published_page_is_whole(tmp_path):
    """The command makes its page from the published records: every table with its rows, every link with its runs."""
    text = html.unescape(published_page(tmp_path).read_text())
    shown = set(re.findall(r'<section class="block" data-table="(\w+)" data-dataset="(\w+)"', text))
    assert {table for table, _ in shown} == {e.name for e in experiments() if e.paper_table and not e.variants}
    embedded = json.loads(re.search(r'id="cells">(.*?)</script>', text, re.DOTALL)[1])
    links = set(re.findall(r'class="run" href="#([^"]*)"', text))
    assert len(links) > 100
    assert links <= set(embedded)


@pytest.mark.parametrize(("name", "options"), [("table1", {}), ("table_noise", {"dataset.label_noise": 0.3})])
def test_the_authors_code_stands_beside_runs_that_changed_no_option(name, options):
    """It was run without noise on the labels: beside runs with noise its numbers would mislead."""
    runs = [{**each, "experiment": name, "options": options} for each in reports()]
    records, experiment = records_frame(runs), load_experiment(name)
    table = make_table(experiment, records, "paper")
    text = page([(experiment, "paper", table)], records, runs, Evidence(records), map_rows=MAP, figures={})
    assert (">2.830 ± 0.187, n = 10</td>" in text) == (not options)
    assert ("authors' code" in html.unescape(text)) == (not options)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Debian's chromium")
@pytest.mark.parametrize("width", [390, 1440])
def test_the_published_page_in_a_browser(tmp_path, width):
    """The page opens from disk, the record that its address names is shown; a picture of it stays in tmp_path."""
    address = f"file://{published_page(tmp_path)}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path}/profile"]  # fmt: skip
    picture = tmp_path / f"{width}.png"
    subprocess.run(
        ["chromium", *flags, f"--window-size={width},2400", f"--screenshot={picture}", address], check=True, timeout=120
    )
    assert picture.stat().st_size > 50_000
    shown = subprocess.run(
        ["chromium", *flags, "--dump-dom", f"{address}#table1/airfoil/fcn3/erm/released"],
        check=True, timeout=120, capture_output=True, text=True,
    ).stdout  # fmt: skip
    dialog = shown[shown.index("<dialog") : shown.index("</dialog>")]
    assert "open" in dialog[:80]
    assert "74c75fd71783f1e6b71f8a622b993dc592897a97cd689c5090a07147a1b097b3" in dialog
    assert dialog.count("<tr>") > 10
