"""Commands of the reproduction; each runs as `python -m scripts.<name>`, and `--help` says what it takes."""

import sys

from scripts.driver.interrupted import hear_sigterm, say_interrupted
from scripts.driver.kernels import preload

#: Commands of earlier versions, below `scripts`, with the module and the words that do their work now.
SUCCESSORS = {
    "ablation": "scripts.reproduce ablation_ood",
    "advise": "scripts.study advise",
    **{f"bench.{name}": f"scripts.bench {name}" for name in ("sampling", "train")},
    "claims": "scripts.render claims",
    "draw_pairs": "scripts.measure pairs",
    "draw_rcf_mnist": "scripts.measure rcf_mnist",
    "invariance": "scripts.measure invariance",
    "make_echo": "scripts.train dataset=echo dataset.synthetic=true",
    "make_views": "scripts.data render",
    "mutants": "tests.attacks.mutants",
    "reliability": "tests.attacks",
    "reproduce_all": "scripts.reproduce all",
    "spurious": "scripts.measure spurious",
    "task_errors": "scripts.measure task_errors",
    "theory": "scripts.measure theory",
    "verify_metrics": "scripts.verify scores",
    "wandb_report": "scripts.collect FOLDER over=OPTION",
    "wheel_check": "tests.attacks.wheel_check",
    "when": "scripts.study train",
}
REMOVED = ("scripts.cures", "scripts.results_page")  # without a successor

preload()  # before anything imports torch
if sys.argv[0] == "-m":  # what it is while Python looks for the command
    sys.excepthook = say_interrupted
    hear_sigterm()
    for _word in sys.orig_argv:
        if _word in REMOVED:
            raise SystemExit(f"error: python -m {_word} is removed; CHANGELOG.md says why")
        if (_old := _word.removeprefix("scripts.")) != _word and _old in SUCCESSORS:
            raise SystemExit(f"error: python -m scripts.{_old} is now python -m {SUCCESSORS[_old]}")
