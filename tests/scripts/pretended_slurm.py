"""SLURM's commands as submitit calls them, on this machine: `sbatch` begins the jobs of an array, `srun` runs one.

It stands in for a cluster where there is none. `commands(folder)` puts them into a folder for PATH, and every script
that is sent is kept in it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

COMMANDS = ("sbatch", "srun", "sacct", "scancel")
ARRAY = 12


def commands(folder: Path) -> Path:
    """Put the commands into a folder, which is made."""
    folder.mkdir()
    for name in COMMANDS:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} "$@"\n')
        path.chmod(0o755)
    return folder


def sbatch(folder: Path, script: str) -> None:
    """Begin a job for each number of the script's array, which end on their own."""
    text = Path(script).read_text()
    (folder / "sent.sh").write_text(text)
    found = re.search(r"--array=0-(\d+)", text)
    for number in range(int(found[1]) + 1 if found else 1):
        own = {"SLURM_ARRAY_JOB_ID": ARRAY, "SLURM_ARRAY_TASK_ID": number, "SLURM_JOB_ID": ARRAY + 1 + number}
        own |= {"SLURM_PROCID": 0, "SLURM_LOCALID": 0, "SLURM_NODEID": 0, "SLURM_NTASKS": 1, "SLURM_JOB_NUM_NODES": 1}
        environment = {**os.environ, **{name: str(value) for name, value in own.items()}}
        log = (folder / f"log{number}").open("w")
        subprocess.Popen(["bash", script], env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    sys.stdout.write(f"Submitted batch job {ARRAY}\n")


def srun(words: list[str]) -> None:
    """Become the command after SLURM's own options."""
    begin = next(place for place, word in enumerate(words) if word.endswith(("python", Path(sys.executable).name)))
    os.execv(words[begin], words[begin:])  # noqa: S606


if __name__ == "__main__":
    name, *given = sys.argv[1:]
    if name == "sbatch":
        sbatch(Path(os.environ["PRETENDED_SLURM"]), given[-1])
    elif name == "srun":
        srun(given)
    elif name == "sacct":
        sys.stdout.write("JobID|State|NodeList\n")
