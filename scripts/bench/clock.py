"""The clock of all benchmarks: seconds of ways that take turns, and the page that shows them."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from matplotlib.figure import Figure

from cmixup.files import write_atomically
from scripts.config.arguments import Args
from scripts.machine.provenance import run_environment
from scripts.records.experiment import RESULTS
from scripts.records.seal import seal_measured
from scripts.report.figures import write_figures

Work = Callable[[], object]
CPU = torch.device("cpu")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # of a new process
SHORT = {"short": "1 tries everything with small sizes and writes nothing; default 0"}


def measured_seconds(work: Work, device: torch.device = CPU, clock: Callable[[], float] | None = None) -> float:
    """Return how long `work` takes: process time on the CPU and wall time on a GPU, unless another clock is given."""
    clock = clock or (time.process_time if device.type == "cpu" else time.perf_counter)
    start = clock()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return clock() - start


def in_turn(ways: Mapping[str, Work], repeats: int, device: torch.device = CPU) -> dict[str, list[float]]:
    """Return the seconds of each way, `repeats` of them, after a call that warms up.

    The ways take turns, so that a change of the machine's speed meets all of them.
    """
    rounds = [{name: measured_seconds(work, device) for name, work in ways.items()} for _ in range(repeats + 1)]
    return {name: [one[name] for one in rounds[1:]] for name in ways}


def put_page(given: Args, name: str, title: str, parts: Sequence[str | list[str]], device: torch.device = CPU) -> None:
    """Print a page, and write it to results/benchmarks/NAME.md unless everything was only tried.

    Args:
        given: the words of the command.
        name: of the file, without its suffix.
        title: of the page.
        parts: paragraphs, and tables as lines.
        device: what was measured; the page says which, and the versions of the packages.
    """
    where = run_environment(device)
    versions = ", ".join(f"{package} {version}" for package, version in where["versions"].items())
    what = ", ".join(filter(None, (where["device"], where["kernels"], f"{platform.system()} {platform.machine()}")))
    machine = f"Measured by `python -m scripts.bench {name.partition('_')[0]}`. Machine: {what}; {versions}."
    blocks = [f"# {title}", *("\n".join(p) if isinstance(p, list) else p for p in parts), machine]
    text = "\n\n".join(blocks) + "\n"
    print(text)
    store_file(given, f"{name}.md", text)


def store_file(given: Args, name: str, text: str) -> None:
    """Write a file of results/benchmarks unless everything was only tried."""
    if not given.switch("short"):
        write_atomically(RESULTS / "benchmarks" / name, text)
        seal_measured(RESULTS, [f"benchmarks/{name}"])


def store_figures(figures: Mapping[str, Figure]) -> None:
    """Write figures, given by their paths below results/."""
    write_figures(figures, RESULTS)
    seal_measured(RESULTS, list(figures))
