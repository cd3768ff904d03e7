"""A configuration becomes a job: its settings, device, options and folder."""

from pathlib import Path
from typing import Any

import pytest
import torch

from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.config.parts import changed_options, resolve_config
from scripts.driver.job import pick_device
from scripts.driver.runs import folder_name
from tests.scripts.jobs import job_of

# ---- devices


def test_cuda_requested_and_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for name in ("cuda", "cuda:1"):
        with pytest.raises(InputError, match=f"device is '{name}', but this machine offers 0 CUDA devices"):
            job_of(f"device={name}")
    assert job_of("device=auto").device == torch.device("cpu")


def test_cuda_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert pick_device("auto") == pick_device("cuda") == torch.device("cuda")
    assert pick_device("cuda:0") == torch.device("cuda:0")
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match="device is 'cuda:1', but this machine offers 1 CUDA devices"):
        pick_device("cuda:1")


# ---- what differs, and the folder's name


def test_differences_are_the_options_that_differ_from_the_preset() -> None:
    def changed(*overrides: str) -> dict[str, Any]:
        return changed_options(resolve_config(compose_train(list(overrides))))

    assert changed() == changed("preset=released") == changed("dataset=no2", "method=erm") == {}
    beside = ("seed=5", "seeds=0..3", "device=cpu", "logger=none", "experiment=table1", "out=/tmp/x", "threads=2")
    assert changed(*beside) == {}
    assert changed("method.bandwidth=5.5") == {"method.bandwidth": 5.5}
    assert changed("method.bandwidth=1.75") == {}
    assert changed("method.alpha=2.0", "preset=released") == {}
    assert changed("method.alpha=0.5", "preset=released") == {"method.alpha": 0.5}
    assert changed("train.epochs=3", "dataset.scaling=all") == {"train.epochs": 3, "dataset.scaling": "all"}
    assert changed("debug=tiny") == {"dataset.synthetic": True, "train.epochs": 2}


def test_options_that_differ_give_folders_that_differ(tmp_path: Path) -> None:
    choices = [
        [], ["preset=released"], ["method.bandwidth=5.5"], ["method.bandwidth=6.5"], ["method.alpha=5.5"],
        ["train.lr=0.5"], ["method=erm"], ["method=mixup"], ["dataset=no2"], ["dataset=no2", "dataset.split_seed=1"],
        ["experiment=table1"], ["method.layer=input"], ["method.bandwidth=5.5", "train.lr=0.5"],
        ["method=mixup", "method.pairing._target_=cmixup.pairing.uniform.Permutation"],  # whose name is another's
    ]  # fmt: skip
    folders = [job_of(*overrides, f"out={tmp_path}").folder for overrides in choices]
    assert len(set(folders)) == len(choices)


def test_a_whole_number_and_the_same_with_a_point_are_one_run() -> None:
    assert job_of("method.bandwidth=5").folder == job_of("method.bandwidth=5.0").folder
    assert job_of("train.lr=1").options == job_of("train.lr=1.0").options == {"train.lr": 1.0}


def test_folder_names_of_texts_that_others_could_be_taken_for() -> None:
    """On a disk without cases `target=Y` and `target=y` would be one folder, and so would one value with a comma."""
    given = [{"dataset.target": "y"}, {"dataset.target": "Y"}, {"dataset.target": "x", "train.epochs": 5},
             {"dataset.target": "x,train.epochs=5"}, {"dataset.target": "X,train.epochs=5"},
             {"dataset.target": "X", "train.epochs": 5}]  # fmt: skip
    names = [folder_name("paper", options) for options in given]
    assert len({name.lower() for name in names}) == len(given)
    assert names[0] == "paper,dataset.target=y"
    assert folder_name("paper", {"dataset.synthetic": True}) == "paper,dataset.synthetic=True"
