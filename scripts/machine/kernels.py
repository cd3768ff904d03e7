"""Which kernels multiply matrices on this CPU, and how an AMD machine is made to take those of Intel.

MKL, inside PyTorch for x86-64, takes its AVX-512 kernels where the processor's vendor is Intel, and others on AMD,
whose sums round otherwise: that is why digits differ between processors. `CMIXUP_KERNELS=intel` has it told that it is
on Intel: one line of C answers in the place of `mkl_serv_intel_cpu_true`, which Intel documents nowhere and may drop.
Nothing here imports torch before it is needed: it comes too late for MKL then.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

VARIABLE = "CMIXUP_KERNELS"
ANSWER = "int mkl_serv_intel_cpu_true(void) { return 1; }"
INTEL, AMD = "MKL AVX-512", "MKL on AMD"
NAMES = {"b9d4ad240b6d": INTEL, "2526cc439c42": AMD}  # by the first digits of the product's hash, MKL 2024.0
OF_DEVICES = {"cpu: Intel": INTEL, "cpu: AMD": AMD}  # all published runs before records named kernels
CODE = Path(__file__).resolve().parents[2]
WIDTH, ROWS = 128, 16  # of FCN3's last layer


def preload_kernels() -> None:
    """Compile and load the answer, where `CMIXUP_KERNELS=intel` asks for it; to be called before torch is imported.

    A name that is loaded for all (as by LD_PRELOAD) goes before the same name inside PyTorch's library. Where there is
    no compiler nothing happens, and `check_kernels` says so.
    """
    compiler = shutil.which("cc")
    if os.environ.get(VARIABLE) != "intel" or compiler is None:
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(OSError, subprocess.CalledProcessError):
        library = Path(folder) / "answer.so"
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=ANSWER.encode(), capture_output=True, check=True)
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


@functools.cache
def running_kernels() -> str:
    """Return which kernels run here: those of products, and the instructions of PyTorch's own.

    A product with FCN3's shapes is computed (below a millisecond), and the hash of its bits names its kernels, without
    a name where it is not known. Bits are what must repeat, and with another MKL or another library they are still
    there to compare; what MKL says of itself is as undocumented as the answer, and another number in each version.
    """
    import torch

    values = 1 / torch.arange(1, ROWS * WIDTH + 1, dtype=torch.float32)  # as IEEE rounds a quotient, everywhere
    product = values.view(ROWS, WIDTH) @ values[:WIDTH, None]
    digits = hashlib.sha256(product.numpy().tobytes()).hexdigest()[:12]
    return f"{NAMES.get(digits, f'products {digits}')}, PyTorch {torch.backends.cpu.get_cpu_capability()}"


def kernels_of(report: Mapping[str, Any]) -> str:
    """Return the kernels of a run, or nothing for a GPU or an unknown CPU; earlier records name the processor alone.

    Those ran on Intel and on AMD machines with AVX-512, on none with `CMIXUP_KERNELS`.
    """
    inferred = [f"{name}, PyTorch AVX512" for start, name in OF_DEVICES.items() if report["device"].startswith(start)]
    return str(report.get("kernels", "".join(inferred)))


def check_kernels() -> None:
    """Refuse `CMIXUP_KERNELS` where it is no known word or the kernels that run are not those it asks for.

    Raises:
        InputError: they are not.
    """
    from cmixup.errors import InputError, check_choice

    if asked := os.environ.get(VARIABLE):
        check_choice(VARIABLE, asked, ("intel",))
        if not running_kernels().startswith(INTEL):
            raise InputError(f"{VARIABLE}={asked} has no effect: {what_is_here()}")


def what_is_here() -> str:
    """Return which kernels run here and, where it is so, that no others can be had."""
    return f"the kernels here are {running_kernels()}" + (
        "" if shutil.which("cc") else ", and there is no C compiler (cc)"
    )


@contextlib.contextmanager
def asking_kernels(word: str) -> Iterator[None]:
    """Have the processes that start in the block take the kernels that a value of `CMIXUP_KERNELS` stands for."""
    before = os.environ.get(VARIABLE, "")
    os.environ[VARIABLE] = word
    try:
        yield
    finally:
        os.environ[VARIABLE] = before


@functools.cache
def word_for(name: str) -> str | None:
    """Return the value of `CMIXUP_KERNELS` with which new processes here have these kernels, or None: there is none."""
    if name in ("", running_kernels()):
        return os.environ.get(VARIABLE, "")
    code = f"from {__name__} import running_kernels; print(running_kernels())"
    for word in ("intel", ""):
        with asking_kernels(word):
            said = subprocess.run([sys.executable, "-c", code], cwd=CODE, capture_output=True, check=False).stdout
        if said.decode().strip() == name:
            return word
    return None
