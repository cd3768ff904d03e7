"""Every recipe runs as it is, learns, and mixes its training rows and no others."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
#: The package that a recipe needs beside scikit-learn, and how many rows it mixes.
RECIPES = {
    "plain_pytorch": ("torch", 10 * 400), "lightning_module": ("lightning", 10 * 400),
    "lightning_callback": ("lightning", 10 * 400), "hugging_face": ("transformers", 10 * 160),
    "hugging_face_masks": ("transformers", 20 * 320), "keras_batches": ("keras", 32 * 400),
    "skorch_net": ("skorch", 10 * (2 * 3 * 200 + 400)), "fastai_callback": ("fastai", 10 * 400),
}  # fmt: skip
#: Counts the rows that are mixed. torchvision, which some of these packages import, is helped beside a CPU torch.
AROUND = """
import runpy, sys
import cmixup.adapters.batch, cmixup.adapters.hidden, cmixup.adapters.pairs, cmixup.mixing.linear
if sys.argv[2] not in ("torch", "keras"):
    import cmixup.networks.vision
    cmixup.networks.vision.import_torchvision()
rows = []
for name in ("batch", "hidden", "pairs"):
    module = getattr(cmixup.adapters, name)
    def counted(*args, _mix_rows=module.mix_rows, **options):
        rows.append(len(args[2].partner))
        return _mix_rows(*args, **options)
    module.mix_rows = counted
if sys.argv[2] == "keras":
    draw = cmixup.PartnerSampler.draw
    def counted(self, anchors, rng):
        rows.append(len(anchors))
        return draw(self, anchors, rng)
    cmixup.PartnerSampler.draw = counted
runpy.run_path(sys.argv[1], run_name="__main__")
print("mixed", sum(rows))
"""


def test_every_recipe_is_short_and_listed() -> None:
    lengths = {path.stem: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert lengths.keys() == RECIPES.keys()
    assert max(lengths.values()) <= 40


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in RECIPES])
def test_a_recipe_runs(tmp_path: Path, name: str) -> None:
    package, rows = RECIPES[name]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    for ours in ("cmixup", "models"):  # not the checkout itself, whose `datasets` hides Hugging Face's
        (tmp_path / ours).symlink_to(EXAMPLES.parent / ours)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AROUND, str(EXAMPLES / f"{name}.py"), package],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "HF_HUB_OFFLINE": "1",
             "OMP_NUM_THREADS": "1", "KERAS_BACKEND": "torch"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    ours, of_mean = map(float, re.search(r"test RMSE ([\d.]+), of the mean label ([\d.]+)", done.stdout).groups())
    assert ours < 0.8 * of_mean
    assert int(re.search(r"mixed (\d+)", done.stdout)[1]) == rows
