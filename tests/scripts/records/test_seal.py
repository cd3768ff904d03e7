"""A seal names every file of results/ that changed without publish or render, and never takes such a change in."""

import random
from pathlib import Path

import pytest

from cmixup.errors import InputError
from scripts.records.published import published_reports
from scripts.records.seal import SEAL, broken_files, check_seal, read_seal, root_line, seal_files, seal_measured

FILES = {"runs/a/x.jsonl": '{"lr": 0.001}\n', "predictions/a.h5": "bytes", "figures/one.png": "png", "paper/t.csv": "1"}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "README.md").write_text("a page that prints the root")
    seal_files(tmp_path, first=True)
    return tmp_path


def test_a_seal_lists_every_file_but_pages_and_itself(results: Path) -> None:
    assert set(read_seal(results)) == set(FILES)
    assert broken_files(results) == []
    (results / "README.md").write_text("another page")
    check_seal(results)


def test_no_flipped_bit_passes_without_a_word(results: Path) -> None:
    rnd, names = random.Random(0), [*FILES, SEAL]
    for k in range(200):
        path = results / names[k % len(names)]
        whole = path.read_bytes()
        changed, bit = bytearray(whole), rnd.randrange(8 * len(whole))
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(InputError, match=str(results)):
            check_seal(results)
        path.write_bytes(whole)
    check_seal(results)


def test_a_page_outside_the_seal_prints_its_root(results: Path) -> None:
    page = results / "README.md"
    page.write_text('The root is <span id="seal-root"></span>; <span id="other">1</span>.\n')
    for text in ("drawn", "drawn again"):
        (results / "figures/one.png").write_text(text)
        root = seal_files(results, {"figures/one.png"})
        assert root_line(results) == f"root {root}"
        assert page.read_text() == f'The root is <span id="seal-root">{root}</span>; <span id="other">1</span>.\n'
    check_seal(results)


def test_what_is_written_is_sealed_anew_and_no_other_change(results: Path) -> None:
    (results / "figures/one.png").write_text("drawn again")
    (results / "figures/two.png").write_text("new")
    (results / "paper/t.csv").unlink()
    before = (results / SEAL).read_bytes()
    with pytest.raises(InputError, match=r"one\.png has other bytes.*two\.png is not sealed.*t\.csv is sealed and not"):
        seal_files(results)
    with pytest.raises(InputError, match=r"t\.csv"):
        seal_files(results, {"figures/one.png", "figures/two.png"})
    assert (results / SEAL).read_bytes() == before
    seal_files(results, {"figures/one.png", "figures/two.png", "paper/t.csv"})
    assert broken_files(results) == []


def test_two_branches_merge_by_the_lines_of_both(results: Path) -> None:
    ours = (results / SEAL).read_text()
    (results / "runs/a/x.jsonl").write_text("theirs")
    seal_files(results, {"runs/a/x.jsonl"})
    merged = f"<<<<<<< HEAD\n{ours}=======\n{(results / SEAL).read_text()}>>>>>>> theirs\n"
    (results / SEAL).write_text(merged)
    root = seal_files(results)
    assert (results / SEAL).read_text().startswith(f"root {root}\n")
    (results / SEAL).write_text(merged)
    (results / "runs/a/x.jsonl").write_text("neither")
    with pytest.raises(InputError, match=r"x\.jsonl has other bytes"):
        seal_files(results)


@pytest.mark.parametrize("content", [b'{"scores": {}', b"\xff\xfe", b'{"a": 1}\n', b"[]\n", b"null\n"])
def test_a_damaged_record_is_one_line_that_names_its_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "runs" / "table1" / "no2" / "erm.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"erm\.jsonl"):
        published_reports(tmp_path)


def test_a_damaged_archive_of_records_is_one_line_that_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "study" / "cars.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x1f\x8b no archive")
    with pytest.raises(InputError, match=r"cars\.jsonl\.gz is no file of reports"):
        published_reports(tmp_path, ("study_protocol2",))


def test_a_measurement_seals_what_it_wrote_and_stops_at_no_other_change(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "figures/one.png").write_text("measured again")
    seal_measured(results, ["figures/one.png"])
    check_seal(results)
    (results / "paper/t.csv").write_text("by hand")
    (results / "figures/one.png").write_text("and again")
    before = (results / SEAL).read_bytes()
    seal_measured(results, ["figures/one.png"])
    assert (results / SEAL).read_bytes() == before
    said = capsys.readouterr().err
    assert said.startswith("not sealed (python -m scripts.verify seal new=figures/one.png): ")
    assert "t.csv has other bytes" in said
