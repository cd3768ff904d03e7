"""The diagnostic of a bandwidth on labels whose answer is known."""

from pathlib import Path

import numpy as np
import pytest

from cmixup.sampling.bandwidth import SUGGESTED_FRACTIONS, bandwidth_for_fraction
from datasets import rcf_mnist
from scripts import bandwidth
from scripts.bandwidth import bandwidth_grid, check_bandwidths, main, published_bandwidths
from scripts.records.csv_rows import read_csv
from scripts.records.experiment import RESULTS


def test_published_bandwidths_come_from_the_papers_table_and_the_release() -> None:
    assert published_bandwidths()["skillcraft"] == [(5e-4, "paper tab:hyperameter_ood"), (1.0, "released README")]
    assert "diabetes" not in published_bandwidths()


def test_the_grid_goes_with_the_spread_of_the_labels() -> None:
    labels = np.random.default_rng(0).normal(size=500)
    np.testing.assert_allclose(
        np.array(bandwidth_grid(labels * 100)) / np.array(bandwidth_grid(labels)), 100, rtol=0.02
    )
    assert bandwidth_grid(np.ones(5)) == [1.0]


def test_the_command_prints_a_table_and_writes_a_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(bandwidth, "to_png", lambda figure: drawn.append(figure) or b"a picture")
    np.savez(tmp_path / "mine.npz", x=np.zeros((100, 1)), y=np.linspace(0, 1, 100))
    main([f"arrays={tmp_path / 'mine.npz'}", "bandwidth=0.5", f"out={tmp_path}"])
    printed = capsys.readouterr().out
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("| ")]
    assert {row[0]: row[-1] for row in rows}["0.5"] == "asked for"
    assert max(map(len, printed.partition("Plot:")[0].splitlines())) <= 85
    assert "self-pairing only: this is ERM" in printed
    labels = bandwidth.dataset_labels(f"arrays={tmp_path / 'mine.npz'}")
    low, high = (bandwidth_for_fraction(labels, share) for share in SUGGESTED_FRACTIONS)
    assert f"bandwidths\nfrom {low:.3g} to {high:.3g} (3 % to 60 %" in printed
    assert (tmp_path / "bandwidth/mine.png").read_bytes() == b"a picture"
    *_, mark = drawn[0].axes[0].lines
    assert (list(mark.get_xdata()), mark.get_label()) == ([0.5], "mine.npz")


def test_the_check_renders_what_is_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.random.default_rng(0).normal(100, 20, (300, 1))
    monkeypatch.setattr(bandwidth, "dataset_labels", lambda _: labels)
    made_up = [(1e-6, "made up")]
    monkeypatch.setattr(bandwidth, "published_bandwidths", lambda: {"airfoil": made_up, "echo": made_up})
    text = check_bandwidths(tmp_path)
    assert "| Airfoil |" in text
    assert "self-pairing only: this is ERM | made up |" in text
    assert (tmp_path / "bandwidth.csv").read_text().count("\n") == text.count("made up") + 1
    assert (tmp_path / "figures/bandwidth.png").stat().st_size > 1000


def test_a_check_with_fewer_datasets_than_are_published_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bandwidth.csv").write_text("dataset\nairfoil\ncrime\n")
    monkeypatch.setattr(bandwidth, "dataset_labels", lambda _: np.linspace(0, 1, 50)[:, None])
    monkeypatch.setattr(bandwidth, "published_bandwidths", lambda: {"airfoil": [(1.0, "made up")]})
    text = check_bandwidths(tmp_path)
    assert "| Airfoil |" in text
    assert text.endswith("Nothing is written: it has crime, whose files are not at hand.")
    assert [path.name for path in tmp_path.iterdir()] == ["bandwidth.csv"]
    assert (tmp_path / "bandwidth.csv").read_text() == "dataset\nairfoil\ncrime\n"


@pytest.mark.slow
def test_the_committed_numbers_of_rcf_mnist_are_those_of_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its labels are angles that are drawn, so this needs no file: the images are left black."""
    ((file, _),) = rcf_mnist.RCFMNIST.files
    monkeypatch.setattr(rcf_mnist.RCFMNIST, "fetch", lambda _: ((file, Path(file.path)),))
    monkeypatch.setattr(rcf_mnist, "read_idx", lambda _, shape: np.zeros(shape, np.uint8))
    monkeypatch.setattr(rcf_mnist, "rotate", lambda images, _: images)
    held_to("rcf_mnist", bandwidth.dataset_labels("dataset=rcf_mnist"))


@pytest.mark.data
@pytest.mark.parametrize("name", ["airfoil", "no2", "exchange_rate", "crime", "skillcraft"])
def test_the_committed_numbers_are_those_of_the_labels(name: str) -> None:
    held_to(name, bandwidth.dataset_labels(f"dataset={name}"))


def held_to(name: str, labels: np.ndarray) -> None:
    """Compare the committed rows of a dataset with what its labels give: to the last digit that is written."""
    rows = [r for r in read_csv(RESULTS / "bandwidth.csv") if r["dataset"] == name]
    reports = bandwidth.reports_of(labels, published_bandwidths()[name])
    assert rows == bandwidth.measured_rows(name, labels, reports), "run make reproduce-bandwidth-check"
