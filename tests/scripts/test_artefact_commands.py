"""Commands of the map that train run whole, each kind once, in a short form on synthetic stand-ins.

What trains nothing or reads finished runs (theory, pairs, invariance, spurious strength, bandwidths, the picture of
RCF-MNIST) has its command in its own test.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from scripts import reproduce
from scripts.config.parts import dataset_class
from scripts.plan import cells
from scripts.records.experiment import Experiment, load_experiment

#: Of each command: a dataset with a quick stand-in, two methods, and what keeps its network small.
SHORT: dict[str, tuple[str, list[str], list[str]]] = {
    "table1": ("no2", ["erm", "cmixup"], []),
    "table2": ("pascal1d", ["maml", "cmixup_meta"], ["model.width=2", "method.inner_steps=1", "method.report_steps=2",
                                                     "train.batch_size=2"]),
    "table3": ("crime", ["erm", "cmixup"], []),
    "table4": ("rcf_mnist", ["cutmix", "puzzlemix_cmixup"], ["model.width=2", "train.batch_size=32"]),
    "table5": ("no2", ["cmixup_x", "cmixup_h"], []),
    "table_noise": ("no2", ["erm", "cmixup"], []),
    "table_batch_ood": ("crime", ["cmixup_batch", "cmixup"], []),
    "figure_overfitting": ("exchange_rate", ["erm", "cmixup"], ["dataset.window=53", "model.channels=2",
                                                                "model.hidden=2"]),
    "figure_bandwidth": ("no2", ["erm", "cmixup"], []),
}  # fmt: skip


def short(name: str) -> Experiment:
    """The experiment on a stand-in: two epochs, two values of a swept option."""
    whole = load_experiment(name)
    overrides = [*whole.overrides, "dataset.synthetic=true", "train.epochs=2", *SHORT[name][2]]
    points = [{"methods": ["cmixup"], "grid": {"method.bandwidth": [0.1, 1.0]}}] if whole.points else []
    return replace(whole, overrides=overrides, points=points, budget_minutes=1e9)


@pytest.mark.slow
@pytest.mark.usefixtures("no_git")
@pytest.mark.parametrize("name", sorted(SHORT))
def test_a_command_runs_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, methods, _ = SHORT[name]
    monkeypatch.setattr(reproduce, "load_experiment", short)
    monkeypatch.setattr(cells, "_published_cpu", lambda *_: [])
    monkeypatch.setattr(cells, "_published", list)
    monkeypatch.setattr(dataset_class(dataset), "fetch", lambda _: [])
    words = ["seeds=1", f"datasets={dataset}", f"methods={','.join(methods)}", "preset=paper", "device=cpu"]
    reproduce.main([name, *words, f"out={tmp_path}"])
    printed = capsys.readouterr().out
    assert f"{tmp_path}" in printed
    assert len(list(tmp_path.rglob("DONE"))) == (3 if name == "figure_bandwidth" else 2)
    written = [*tmp_path.glob("tables/*.md"), *tmp_path.glob("figures/*.png")]
    assert written
    assert all(path.stat().st_size > 100 for path in written)
