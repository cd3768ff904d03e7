"""The Python of README and docs/ runs as a user pastes it: a block alone (those of the tutorial in their order, see
test_tutorial.py), one that shows a loss trains with it, and one
that prints is followed by what it prints."""

import contextlib
import importlib.util
import io
import re
import statistics
import sys
import warnings

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from scripts.config.compose import CONFIG_DIR

ROOT = CONFIG_DIR.parent
#: Where it stands before a block, the block runs only where this module is installed.
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>[\w.]+) -->\n)?```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<said>.*?)```)?", re.DOTALL
)
#: A block that trains ends with no more than this share of the loss that it began with.
FALLS_TO = 0.8


def blocks():
    """Every block, by its page and its number there."""
    for path in (ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - {ROOT / "docs" / "tutorial.md"})):
        for number, block in enumerate(BLOCK.finditer(path.read_text())):
            needs = block["needs"]
            absent = needs is not None and not is_installed(needs)
            yield pytest.param(
                block["code"], block["said"] or "", id=f"{path.relative_to(ROOT)}-{number}",
                marks=pytest.mark.skipif(absent, reason=f"needs {needs}"),
            )  # fmt: skip


def is_installed(module):
    parent = module.rpartition(".")[0]
    return (not parent or is_installed(parent)) and importlib.util.find_spec(module) is not None


def paste(code):
    """Run a block by itself, with warnings as errors, and return what it prints.

    It fails if it shows a loss and does not train with it.

    What counts are the losses on which the block itself calls `backward`: those of its last third must be lower than
    those of its first.
    """
    losses, steps, whole = [], [], torch.Tensor.backward

    def backward(loss, *args, **kwargs):
        if sys._getframe(1).f_code.co_filename == "block":
            losses.append(loss.item())
        return whole(loss, *args, **kwargs)

    hook = register_optimizer_step_post_hook(lambda *_: steps.append(len(losses)))
    try:
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), contextlib.redirect_stdout(said):
            warnings.simplefilter("error")  # such as mse_loss's, of shapes that broadcast
            patch.setattr(torch.Tensor, "backward", backward)
            torch.manual_seed(0)
            exec(compile(code, "block", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own pages
    finally:
        hook.remove()
    if not re.search(r"\bloss\b", code):
        return said.getvalue()
    assert ".square().mean()" not in code, "take mse_loss: it warns of labels (B,) beside predictions (B, 1)"
    assert losses, "a loss is computed and nothing trains with it: backward() is never called"
    assert steps[-1:] == [len(losses)], "the last backward() is followed by no step of an optimiser"
    third = max(1, len(losses) // 3)
    began, ended = statistics.mean(losses[:third]), statistics.mean(losses[-third:])
    assert len(losses) >= 3, "too few steps to see that it trains"
    assert ended < FALLS_TO * began, f"the loss is {began:.4g} at first and {ended:.4g} in the end"
    return said.getvalue()


@pytest.mark.parametrize(("code", "said"), [*blocks()])
def test_every_block_runs_alone_trains_if_it_shows_a_loss_and_prints_what_the_page_shows(code, said):
    assert paste(code) == said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("optimizer.step()\n", "\n", "no step of an optimiser"),
        ("loss.backward()\n", "\n", r"backward\(\) is never called"),
        ("features.sum(1, keepdim=True)", "features.sum(1)", "Using a target size"),
        ("torch.nn.functional.mse_loss(model(x), y)", "(model(x) - y).square().mean()", "take mse_loss"),
        ("optimizer = torch.optim.Adam(model", "optimizer = torch.optim.Adam(torch.nn.Linear(1, 1)", "at first and"),
        ("model.parameters())", "model.parameters(), maximize=True)", "at first and"),
        ("range(10)", "range(0)", r"backward\(\) is never called"),
        ("import torch\n", "\n", "torch"),
    ],
)
def test_what_a_block_may_not_do(old, new, message):
    code = next(blocks()).values[0]  # README's first
    assert code.count(old) == 1
    with pytest.raises((AssertionError, UserWarning, NameError), match=message):
        paste(code.replace(old, new))
