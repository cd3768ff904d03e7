"""Learned invariance: the divergence against an independent computation, and that of finished runs."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from cmixup import load_run
from cmixup.errors import InputError
from scripts.analysis import invariance as divergence
from scripts.analysis import runs
from scripts.analysis.invariance import Invariance, learned_invariance, measure_run
from scripts.analysis.runs import dataset_of, merge_rows, runs_of
from scripts.config.arguments import Args
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.records.experiment import RESULTS
from tests.helpers import CPU
from tests.scripts.jobs import execute_job
from tests.scripts.test_render import report

Rows = tuple[Tensor, Tensor, Tensor]


def setting(monkeypatch: pytest.MonkeyPatch, bins: int, components: int = 2, min_points: int = 5) -> None:
    for name, value in (("BINS", bins), ("COMPONENTS", components), ("MIN_POINTS", min_points)):
        monkeypatch.setattr(divergence, name, value)


def rows(n: int = 240, domains: int = 3, d: int = 6, shift: float = 0.0, seed: int = 0) -> Rows:
    """Features that carry the label and noise; those of the last domain are moved by `shift`."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    h = np.outer(y, rng.normal(size=d)) + rng.normal(size=(n, d)) @ np.diag(np.linspace(1, 2, d))
    domain = rng.integers(0, domains, n)
    h[domain == domains - 1] += shift
    return torch.from_numpy(h), torch.from_numpy(y), torch.from_numpy(domain)


def reference(data: Rows, bins: int, r: int, min_points: int) -> tuple[float, int]:
    """The definition, cell by cell, with scikit-learn's scaling, components and densities."""
    # Imported here, as every worker imports this file, and one runs it.
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KernelDensity
    from sklearn.preprocessing import StandardScaler

    h, y, domain = (tensor.numpy() for tensor in data)
    z = PCA(r).fit_transform(StandardScaler().fit_transform(h))
    edges = np.quantile(y, np.arange(1, bins) / bins)
    bin_of = np.array([sum(value >= edge for edge in edges) for value in y])
    cells = {
        (c, e): z[(bin_of == c) & (domain == e)] for c in range(bins) for e in np.unique(domain)
        if ((bin_of == c) & (domain == e)).sum() >= min_points
    }  # fmt: skip
    points = sum(map(len, cells.values()))
    spread = np.sqrt(sum(((p - p.mean(axis=0)) ** 2).sum(axis=0) for p in cells.values()) / points)
    cells = {key: p / spread for key, p in cells.items()}
    width = (points / len(cells)) ** (-1 / (r + 4))

    def log_density(at: np.ndarray, of: np.ndarray) -> float:
        return max(KernelDensity(bandwidth=width).fit(of).score_samples(at[None])[0], math.log(1e-12))

    divergences = []
    for (c, e), p in cells.items():
        for (c2, e2), q in cells.items():
            if c == c2:
                ratios = [log_density(x, np.delete(p, k, axis=0)) - log_density(x, q) for k, x in enumerate(p)]
                divergences.append(0.0 if e == e2 else float(np.mean(ratios)))
    return float(np.mean(divergences)), len(divergences)


@pytest.mark.parametrize(("bins", "r", "min_points", "shift"), [(3, 2, 5, 0.5), (2, 1, 12, 0.0)])
def test_it_is_what_the_definition_gives(
    bins: int, r: int, min_points: int, shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    h, y, domain = rows(n=60, shift=shift)
    domain = domain * 7 - 3
    setting(monkeypatch, bins, r, min_points)
    divergence = learned_invariance(h, y, domain)
    value, pairs = reference((h, y, domain), bins, r, min_points)
    assert divergence.value == pytest.approx(value, rel=1e-9)
    assert divergence == Invariance(divergence.value, pairs, pairs / (bins * 9))


def test_names_of_domains_order_of_rows_and_affine_maps_of_features_do_not_matter() -> None:
    h, y, domain = rows(shift=1)
    reference_value = learned_invariance(h, y, domain).value
    assert reference_value > 0.1
    order = torch.from_numpy(np.random.default_rng(1).permutation(len(y)))
    scale = torch.tensor([1e-4, -2, 3, 50, -0.1, 1e3], dtype=torch.float64)
    constant = torch.full((len(h), 2), 0.1, dtype=h.dtype)
    for same in (
        (h, y, torch.tensor([17, -4, 5])[domain]),
        (h[order], y[order, None], domain[order]),
        (h * scale + torch.arange(6), y, domain),
        (torch.cat([h, constant], dim=1), y, domain),
    ):
        assert learned_invariance(*same).value == pytest.approx(reference_value, rel=1e-6)


def test_collapsed_features_have_no_divergence_and_small_cells_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    h, y, domain = rows(shift=1)
    assert learned_invariance(torch.ones(len(y), 3), y, domain).value == pytest.approx(0, abs=1e-9)
    line = h[:, :1] * torch.tensor([1.0, -3.0, 0.5])
    assert math.isfinite(learned_invariance(line, y, domain).value)
    setting(monkeypatch, 10, min_points=150)
    none = learned_invariance(h, y, domain)
    assert math.isnan(none.value)
    assert (none.pairs, none.valid_fraction) == (0, 0.0)


def test_the_rows_of_a_run_are_those_of_its_representation(tmp_path: Path) -> None:
    words = ["dataset=crime", "method=erm", "debug=tiny", "experiment.name=table3", "train.batch_size=500", "seeds=[1]"]
    (folder,) = execute_job(plan_job(compose_train([*words, f"out={tmp_path}"])))
    content = json.loads((folder / "report.json").read_text())
    train = dataset_of(content["config"]["dataset"]).load(1).train
    with torch.no_grad():
        h = load_run(folder).model.features(train.x)
    every, largest = measure_run(content, tmp_path, CPU)
    assert (every["domains"], largest["domains"]) == ("all", "largest 10")
    for row, k in ((every, None), (largest, 10)):
        divergence = learned_invariance(h, train.y, train.domain, max_domains=k)
        assert float(row["value"]) == pytest.approx(divergence.value, rel=1e-3)
        assert float(row["valid_fraction"]) == pytest.approx(divergence.valid_fraction, rel=1e-3)
        assert (row["dataset"], row["method"], row["seed"], row["split"]) == ("crime", "erm", 1, "train")


def test_new_rows_replace_those_of_the_same_cell_alone(tmp_path: Path) -> None:
    path = tmp_path / "invariance.csv"
    path.write_text("dataset,seed,value\ncrime,0,1\nskillcraft,0,2\n")
    new = [{"dataset": "skillcraft", "seed": seed, "value": "3"} for seed in (0, 1)]
    rows = merge_rows(path, new, "dataset", "seed")
    assert [list(row.values()) for row in rows] == [
        ["crime", "0", "1"], ["skillcraft", 0, "3"], ["skillcraft", 1, "3"]
    ]  # fmt: skip


def test_runs_are_those_of_the_experiment_that_follow_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"experiment": "table3", "dataset": "crime"}
    others = ({"method": "cmixup", "options": {"method.bandwidth": 3.0}}, {"preset": "released"})
    reports = [report(run=str(k), **cell, **more) for k, more in enumerate(({}, *others))]
    monkeypatch.setattr(runs, "load_reports", lambda _: reports)
    measured = list[str]()
    monkeypatch.setattr(divergence, "measure_run", lambda report, *_: measured.append(report["run"]) or [])
    monkeypatch.setattr(divergence, "write_analysis", lambda *_, **__: None)
    divergence.run(Args(out="outputs", results=str(RESULTS), datasets="crime", device="cpu"))
    assert measured == ["0"]
    with pytest.raises(InputError, match="holds no finished run of table3 on skillcraft, preset 'paper'; make"):
        divergence.run(Args(out="outputs", results="elsewhere", datasets="skillcraft", device="cpu"))


@pytest.mark.parametrize(("commit", "message"), [("", "uncommitted"), ("c0ffee", "synthetic data")])
def test_numbers_of_uncommitted_code_or_synthetic_data_are_refused(
    commit: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = report(config={"dataset": {"synthetic": True}}, commit=commit)
    monkeypatch.setattr(runs, "load_reports", lambda _: [made])
    with pytest.raises(InputError, match=message):
        runs_of(Args(out="outputs"), ["table1"], lambda _: True, "")
    assert runs_of(Args(out="outputs", results="elsewhere"), ["table1"], lambda _: True, "")
