"""README's code runs, and the commands it names exist."""

import re
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from scripts.driver.compose import CONFIG_DIR

ROOT = CONFIG_DIR.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_blocks_run(block):
    space: dict = {}
    exec(block, space)  # noqa: S102 - our own README
    assert space["loss"].item() >= 0


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"(?:`|^)make ([a-z][a-z0-9-]*)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE), f"make {target} is not described in the Makefile"


@pytest.mark.parametrize("line", re.findall(r"^python -m scripts\.train (.*?)\s*(?:#.*)?$", README, re.MULTILINE))
def test_train_commands_compose(line):
    overrides = [part.strip("'").replace("range(0,3)", "0") for part in line.removeprefix("-m ").split()]
    single = [part.split(",")[0] for part in overrides]  # of a sweep, the first value
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        assert compose("train", overrides=single).method.name


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / Path(link)).exists(), link
