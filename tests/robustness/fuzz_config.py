"""Command lines of real keys with hostile values: a plan, or one line of `InputError`.

Strategies of hypothesis in the place of the values never drew, in 10,000 lines, what three of thirteen planted faults
need, which the trial fell over once: a number of hundreds of digits, a text of thousands, a function for a number.
"""

import contextlib
import functools
import io
import random
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from datasets.common.base import TabularDataset
from datasets.common.table.user import UserTable
from scripts.config.compose import compose_train
from scripts.config.parts import resolve_config
from scripts.driver.execute import make_run
from scripts.driver.job import plan_job
from tests.robustness.attempts import judged, run_attempts, seeded
from tests.robustness.base import Trial

VALUES = (
    "", "null", "true", "false", "0", "1", "-1", "2", "3.5", "-0.5", "0.5", "1e-3", "1e200", "-1e200", "1e400",
    "5e-324", "nan", "inf", "-inf", ".nan", ".inf", "1_000", "0x10", "010", "4294967295", "4294967296", "2147483648",
    "100000", "9223372036854775808", "-9223372036854775809", "1" + "0" * 400, "-1" + "0" * 400, "[]", "{}", "[0,0]",
    "[0,1]", "[-1]", "[null]", "[[1]]", "{a:1}", "{_target_:os.system}", "{_target_:builtins.print}", "''", '""',
    "' '", "a", "auto", "uniform", "hidden", "[a,b]", "fraction", "[fraction,0.2]", "[std,0]", "x" * 3000, "ü", "☃",
    "'\n'", "'\\0'", "../..", "/", "/dev/null/x", "~", "$", "${", "${missing}", "${oc.env:NOPE}", "${seed}",
    "${dataset}", "${oc.decode:x}", "0..3", "3..0", "0..99999999999", "..", "0..", "1..2..3", "0,0", ",", "1,2,3",
    "range(0,3)", "choice(1,2)", "glob(*)", "interval(0,1)", "int(3)", "str(3)", "float(x)", "cuda", "cuda:99",
    "cpu:3", "meta", "cpu", "datasets.no2.NO2", "models.fcn3.FCN3", "cmixup.methods.erm.ERM", "no2", "airfoil",
    "cmixup", "fcn3", "tuned", "paper", "1,", "a=b", "(", ")", "!!python/object:os.system", "@", "a b", "a:b", "*",
    "&", "#", "%", "\\", "|", "- 1", "1e", "e1", "+1", "--1",
)  # fmt: skip
WORDS = (
    "", "=", "a", "=1", "seed", "~seed", "~method", "~train", "~train.lr", "+seed=1", "++seed=1", "+a=1", "+a.b.c=1",
    "++train=1", "~a", "train", "train=x", "method=x", "method.name={}", "method/pairing=x", "method/pairing=null",
    "+method/pairing=label", "dataset=", "dataset=null", "dataset=[no2]", "model=lstnet", "model=conv_maml",
    "model@x=fcn3", "method@a:b=erm", "experiment=x", "debug=tiny", "debug=x", "hydra.run.dir=x",
    "hydra/job_logging=x", "preset=x", "preset=released", "-m", "--cfg", "dataset.presets=1",
    "dataset.presets.default=1", "dataset.presets.default.epochs=a", "train.track=[test,x]", "a" * 5000,
)  # fmt: skip
MANY = (
    "cmixup", "erm", "mixup", "k_mixup", "mixrl", "local_mixup", "cmixup_batch",
)  # fmt: skip
SYNTHETIC = (
    "no2", "airfoil", "crime", "skillcraft", "csv", "exchange_rate", "rcf_mnist", "dti_davis", "pascal1d", "echo",
)  # fmt: skip


@functools.cache
def keys(dataset: str, method: str) -> tuple[str, ...]:
    """Return every key of a configuration."""
    found: list[str] = []

    def walk(path: str, node: Any) -> None:
        if path:
            found.append(path)
        if isinstance(node, Mapping):
            for key, value in node.items():
                walk(f"{path}.{key}" if path else str(key), value)

    walk("", resolve_config(compose_train([f"dataset={dataset}", f"method={method}"])))
    return tuple(found)


@functools.cache
def methods(dataset: str) -> tuple[str, ...]:
    """Return methods that a dataset is tried with: few, since each choice of groups is composed once a process."""
    if dataset == "pascal1d":
        return ("cmixup_meta", "maml")
    return ("cmixup",) if dataset != "no2" else MANY


def command_line(rnd: random.Random) -> list[str]:
    """Return the words of one command line."""
    dataset = rnd.choice(("no2", "no2", "no2", *SYNTHETIC))
    method = rnd.choice(methods(dataset))
    words = [f"dataset={dataset}", f"method={method}", "dataset.synthetic=true", "logger=none", "out=/tmp/never"]
    for _ in range(rnd.choice((1, 1, 2, 3))):
        if rnd.random() < 0.04:
            words.append(rnd.choice(WORDS))
        else:
            sign = rnd.choice(("",) * 50 + ("+", "++", "~"))
            words.append(f"{sign}{rnd.choice(keys(dataset, method))}={rnd.choice(VALUES)}")
    return words


def attempt(number: int, seed: int) -> str:
    """Compose and plan one command line; small tables are loaded, too. Return what was wrong, or an empty text."""
    _, rnd = seeded(seed, number)
    words = command_line(rnd)
    wrong = ""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            job = plan_job(compose_train(words))
            if isinstance(job.dataset, TabularDataset | UserTable) and job.dataset.synthetic:
                torch.set_num_threads(job.config["threads"])
                make_run(job, job.seeds[0])
                job.settings.lr_at(job.settings.epochs)
                torch.set_num_threads(1)
    except Exception as error:
        wrong = judged(error)
    return (
        f"words {number} of seed {seed}: {wrong}; {' '.join(word[:100] for word in words[:2] + words[5:])}"
        if wrong
        else ""
    )


def run(count: int, seed: int, folder: Path) -> Trial:
    """Try `count` command lines."""
    torch.set_num_threads(1)
    for dataset in SYNTHETIC:  # composed once, before children are
        for method in methods(dataset):
            keys(dataset, method)
    what = "command lines of real keys with hostile values: a plan, or one line that names the key"
    return run_attempts("fuzz_config", what, partial(attempt, seed=seed), count, folder)
