"""The clock of all benchmarks, and the files of its measurements."""

import json
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from cmixup.files import write_atomically
from scripts.config.arguments import Args
from scripts.driver.provenance import run_environment
from scripts.records.csv_rows import read_csv, to_csv
from scripts.records.experiment import RESULTS

SPEED, ESTIMATORS, MACHINES = "results/speed.md", "results/estimators.md", "machines.json"
SHORT = {"short": "1 tries everything with small sizes and writes nothing; default 0"}


def measured_seconds(work: Callable[[], object]) -> float:
    """Return the process seconds that `work` takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def stored_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of results/benchmarks/NAME.csv."""
    return read_csv(RESULTS / "benchmarks" / f"{name}.csv")


def store_rows(args: Args, name: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write results/benchmarks/NAME.csv and, into machines.json, the machine; only print the rows if `short=1`."""
    text = to_csv(rows, columns)
    if args.switch("short"):
        print(text)
        return
    environment = run_environment(torch.device("cpu"))
    versions = ", ".join(f"{package} {version}" for package, version in environment["versions"].items())
    system = f"{platform.system()} {platform.machine()}"
    machines = json.loads((RESULTS / "benchmarks" / MACHINES).read_text())
    machines[name] = ", ".join(filter(None, (environment["device"], system, versions)))
    write_atomically(RESULTS / "benchmarks" / f"{name}.csv", text)
    write_atomically(RESULTS / "benchmarks" / MACHINES, json.dumps(machines, indent=1) + "\n")


def with_machine(table: str, name: str) -> str:
    """Return a table of the page with a line on the processor; the file has the versions, too."""
    machine = json.loads((RESULTS / "benchmarks" / MACHINES).read_text())[name]
    place = f"[{machine.removeprefix('cpu: ').partition(',')[0]}](benchmarks/{MACHINES})"
    return f"{table}\n\nMeasured by `python -m scripts.bench {name}` on {place}."
