"""A method, pairing, mixing, lambda, dataset or backbone is added with one file and one config, and nothing else."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts import bandwidth, collect, reproduce, tune
from scripts.config import parts as config
from scripts.config.compose import CONFIG_DIR, is_custom, normalize_arguments
from scripts.config.words import take_folders
from scripts.driver.execute import execute_together
from scripts.driver.job import plan_job
from tests.scripts.jobs import execute_job

CODE = {
    "my_mixing": """
        import numpy as np
        import torch
        from cmixup.mixing.base import Mixing

        class Swap(Mixing):
            '''Takes each feature from the partner with probability 1 - lam.'''

            def draw(self, order, rng):
                return {"level": rng.random((len(order.index), 256)).astype(np.float32)}

            def forward(self, first, second, draws):
                own = draws["level"][..., : first.shape[-1]] < draws["lam"].unsqueeze(-1)
                return torch.where(own, first, second), own.float().mean(dim=-1)
    """,
    "my_lam": """
        import numpy as np
        from cmixup.mixing.lam import Lam

        class Flat(Lam):
            '''Draws lambda uniformly.'''

            def draw(self, sizes, rng):
                return rng.random(int(sizes.sum()), dtype=np.float32)
    """,
    "my_model": """
        from torch import nn
        from cmixup.backbone import Backbone

        class Linear(Backbone):
            '''One layer.'''

            def __init__(self, in_shape, out_features: int):
                super().__init__()
                self.out = nn.Linear(in_shape[0], out_features)

            def forward(self, x):
                return self.out(x)
    """,
}
CONFIGS = {
    "method/mixing/my_mixing.yaml": "{name: my_mixing, _target_: parts.my_mixing.Swap}",
    "method/lam/my_lam.yaml": "{name: my_lam, _target_: parts.my_lam.Flat}",
    "model/my_model.yaml": "{name: my_model, _target_: parts.my_model.Linear}",
}


def on_the_page() -> Iterator[tuple[str, str]]:
    """The files that docs/new_method.md shows, path and text: a block's file is the one named last before it."""
    root = CONFIG_DIR.parent
    page = (root / "docs" / "new_method.md").read_text().partition("## To the clone")[2]
    copied = r"`((?:cmixup|datasets)/[\w/]+\.py)` is a copy of\s\[`(examples/[\w/]+\.py)`\]"
    for target, source in re.findall(copied, page):
        yield target, (root / source).read_text()
    for block in re.finditer(r"```(?:python|(yaml))\n(.*?)```", page, re.DOTALL):
        ending = "yaml" if block[1] else "py"
        yield re.findall(rf"`((?:cmixup|datasets|configs)/[\w/]+\.{ending})`", page[: block.start()])[-1], block[2]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of one's own with new parts: a module and a config each."""
    tmp_path = tmp_path_factory.mktemp("project")
    (tmp_path / "parts").mkdir()
    for name, text in CODE.items():
        lines = [line.removeprefix("        ") for line in text.splitlines()]
        (tmp_path / "parts" / f"{name}.py").write_text("from __future__ import annotations\n" + "\n".join(lines) + "\n")
    for name, text in CONFIGS.items():
        (tmp_path / "configs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "configs" / name).write_text(text)
    for name, text in on_the_page():
        place = tmp_path / (name if name.endswith(".yaml") else f"parts/{Path(name).name}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            re.sub(r"_target_: (?!cmixup\.methods\.mix\b).*\.(\w+\.\w+)$", r"_target_: parts.\1", text, flags=re.M)
        )
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("CMIXUP_CONFIG", "")
        take_folders(["--config-dir", str(tmp_path / "configs")])
        monkeypatch.syspath_prepend(str(tmp_path))
        yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "parts"]:
        del sys.modules[name]


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["dataset=wave", "method=halving", "method.patience=2"], {"method.patience": 2}),
        (["dataset=wave", "method=cmixup", "model=my_model"], {}),
        (["method=cmixup", "method/mixing=my_mixing"], {"method.mixing": "my_mixing"}),
        (["method=local_mixup", "method/mixing=my_mixing"], {"method.mixing": "my_mixing"}),
        (["method=mixrl", "method/mixing=my_mixing", "debug=tiny"], {"method.mixing": "my_mixing"}),
        (["method=mixup", "method/lam=my_lam"], {"method.lam": "my_lam"}),
        (
            ["method=cmixup", "method.layer=hidden", "+method/transform=noise", "method.transform.std=0.3"],
            {"method.transform": "noise", "method.transform.std": 0.3},
        ),
        (["method=erm", "+method/transform=noise"], {"method.transform": "noise"}),
        (["method=cmixup", "method/pairing=centres"], {"method.pairing": "centres"}),
        (["method=centres", "method.pairing.clusters=3"], {"method.pairing.clusters": 3}),
        (["method=halving", "method.patience=1", "method.layer=hidden"], {"method.patience": 1}),
    ],
)
def test_a_part_trains_with_one_file_and_one_config(tmp_path: Path, words: list[str], options: dict[str, Any]) -> None:
    given = [*words] if words[0].startswith("dataset=") else ["dataset=no2", "dataset.synthetic=true", *words]
    given += [f"out={tmp_path}", "logger=none", "train.epochs=2", "device=cpu"]
    (run,) = execute_job(plan_job(config.compose_train(given)))
    report = json.loads((run / "report.json").read_text())
    chosen = {key: value for key, value in report["options"].items() if key.startswith("method.")}
    assert {key: value for key, value in options.items() if key.startswith("method.")}.items() <= chosen.items()
    assert all(key.partition(".")[0] for key in options)
    assert 0 < report["scores"]["test"]["rmse"] < float("inf")
    for name in options.values():
        if isinstance(name, str):
            assert name in report["run"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("method=halving +method.patince=1", r"method\.patince is not known; method takes patience, pairing, lam, lay"),
        ("method=halving method.layer=3", r"method\.layer must be a word, got 3"),
        ("method=halving ~method/lam", r"_target_ Halving cannot be called: missing .*'lam'"),
        ("method/pairing=centres method.pairing.clusters=two",
         r"method\.pairing\.clusters must be a whole number, got 'two'"),
        ("method/pairing=support_uniform", r"method\.pairing must be a Pairing here, got support_uniform"),
        ("preset=paper", "preset must be one of default, tuned, tuned_default for dataset wave"),
        ("method.pairing=uniform", r"method\.pairing is chosen with method/pairing=, one of .*centres"),
    ],
)  # fmt: skip
def test_new_parts_refuse_misspelt_options(words: str, message: str, parts: Path) -> None:
    with pytest.raises(config.InputError, match=message):
        plan_job(config.compose_train(["dataset=wave", *words.split()]))


EXPERIMENT = "{name: own, title: Mine, datasets: [wave], methods: [erm, halving], seeds: 1, budget_minutes: 5}"


@pytest.fixture
def conf(parts: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of configurations in a package, which nothing names yet."""
    conf = parts / "parts" / "conf"
    if not conf.exists():
        shutil.copytree(parts / "configs", conf)
    for name, text in {"experiment/own": EXPERIMENT, "run/fast": "# @package _global_\ntrain: {lr: 0.5}"}.items():
        (conf / name).parent.mkdir(exist_ok=True)
        (conf / f"{name}.yaml").write_text(text)
    monkeypatch.setenv("CMIXUP_CONFIG", "")
    return conf


def test_a_folder_of_ones_own_is_named_as_in_hydra(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hydra = [f"hydra.searchpath=[file://{conf}]"]
    for spelt in (["--config-dir", str(conf)], [f"--config-dir={conf}"], by_hydra):
        monkeypatch.setenv("CMIXUP_CONFIG", "")
        with pytest.raises(config.InputError, match="dataset must be one of"):
            config.compose_train(["dataset=wave"])
        assert normalize_arguments([*spelt, "dataset=wave"]) == ["dataset=wave", f'hydra.searchpath=["file://{conf}"]']
        assert os.environ["CMIXUP_CONFIG"] == str(conf)
        assert config.compose_train(["dataset=wave", "+run=fast"]).train.lr == 0.5


def test_every_command_finds_parts_in_a_folder_of_ones_own(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = ["--config-dir", str(conf)], f"out={tmp_path}"
    words = normalize_arguments([*folder, "dataset=wave", "+run=fast", out, "logger=none"])
    for method in ("halving", "erm"):
        job = plan_job(config.compose_train([*words, f"method={method}"]))
        assert (job.settings.lr, job.options) == (0.5, {"train.lr": 0.5})
        execute_job(job)

    def in_a_new_process(command: Any, *given: str) -> str:
        monkeypatch.setenv("CMIXUP_CONFIG", "")
        command.main([*folder, *given, out])
        return capsys.readouterr().out

    monkeypatch.setattr(tune, "train_items", lambda items, *_, **__: [execute_together(i.jobs) for i in items][:0])
    for command in (bandwidth, collect):
        monkeypatch.setattr(command, "to_png", lambda _: b"")
    assert "wave: 200 training labels" in in_a_new_process(bandwidth, "dataset=wave")
    assert "own: wave halving default: 1 runs" in in_a_new_process(reproduce, "own", "dry_run=1", "preset=default")
    assert "halving" in in_a_new_process(collect, "over=method")
    output = in_a_new_process(tune, "dataset=wave", "method=erm", "epochs=1")
    assert f"-> {tmp_path / tune.FILE}\npython -m scripts.train dataset=wave method=erm" in output
    assert len((tmp_path / tune.FILE).read_text().splitlines()) == 1
    assert [is_custom(*names) for names in (("wave", "erm"), ("no2", "halving"), ("no2", "erm"))] == [True, True, False]


def test_a_folder_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMIXUP_CONFIG", "")
    for word in (
        "--config-dir=/nowhere",
        "hydra.searchpath=[pkg://nothing.conf]",
        "hydra.searchpath=[file:///nowhere]",
    ):
        place = word.partition("=")[2].strip("[]")
        with pytest.raises(config.InputError, match=f"must name folders, got '{place}'"):
            take_folders([word])


def test_a_file_that_configs_would_hide_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMIXUP_CONFIG", "")
    (tmp_path / "method").mkdir()
    shutil.copy(CONFIG_DIR / "method" / "mixup.yaml", tmp_path / "method")
    with pytest.raises(config.InputError, match=r"mixup\.yaml would not be read: configs/ has a file of"):
        normalize_arguments([f"--config-dir={tmp_path}", "method=mixup"])
