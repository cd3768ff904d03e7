"""Records name the kernels that ran; CMIXUP_KERNELS=intel has an effect or is refused, and changes nothing unasked."""

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cmixup.errors import InputError
from scripts.driver.cli import user_errors
from scripts.machine import kernels as module
from scripts.machine.kernels import (
    AMD,
    INTEL,
    VARIABLE,
    asking_kernels,
    check_kernels,
    kernels_of,
    preload_kernels,
    running_kernels,
    word_for,
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(VARIABLE, raising=False)
    running_kernels.cache_clear()
    word_for.cache_clear()
    yield
    running_kernels.cache_clear()
    word_for.cache_clear()


def test_a_record_names_the_kernels_by_what_they_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    found = running_kernels()
    assert found.endswith(f", PyTorch {torch.backends.cpu.get_cpu_capability()}")
    product = torch.Tensor.__matmul__
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: product(a, b).nextafter(torch.tensor(9.0)))
    running_kernels.cache_clear()
    assert running_kernels().startswith("products ")
    assert running_kernels() != found


def test_threads_and_default_types_do_not_change_the_name() -> None:
    found, threads = running_kernels(), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.set_default_dtype(torch.float64)
        running_kernels.cache_clear()
        assert running_kernels() == found
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float32)


def test_kernels_of_earlier_records_follow_from_their_processors() -> None:
    assert kernels_of({"device": "cpu: Intel(R) Xeon(R) Processor"}) == f"{INTEL}, PyTorch AVX512"
    assert kernels_of({"device": "cpu: AMD EPYC"}) == f"{AMD}, PyTorch AVX512"
    assert kernels_of({"device": "cpu: AMD EPYC", "kernels": "others"}) == "others"
    assert kernels_of({"device": "cuda: AMD"}) == kernels_of({"device": "cpu: arm"}) == ""


def test_what_is_asked_for_is_there_or_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_kernels()
    monkeypatch.setattr(module, "running_kernels", lambda: f"{AMD}, PyTorch AVX512")
    with asking_kernels("fast"), pytest.raises(InputError, match=f"{VARIABLE} must be one of intel, got 'fast'"):
        check_kernels()
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/cc")
    with asking_kernels("intel"), pytest.raises(SystemExit), user_errors():
        pytest.fail("the command has begun")
    said = f"error: {VARIABLE}=intel has no effect: the kernels here are {AMD}, PyTorch AVX512\n"
    assert capsys.readouterr().err == said
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with asking_kernels("intel"), pytest.raises(InputError, match=r"no effect: .*, and there is no C compiler \(cc\)"):
        check_kernels()
    monkeypatch.setattr(module, "running_kernels", lambda: f"{INTEL}, PyTorch AVX512")
    with asking_kernels("intel"):
        check_kernels()


def test_nothing_is_compiled_unasked_or_where_nothing_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: pytest.fail("loaded"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("compiled"))
    preload_kernels()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with asking_kernels("intel"):
        preload_kernels()
    monkeypatch.setattr(shutil, "which", lambda _: "/nowhere/cc")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(subprocess.CalledProcessError(1, "")))
    with asking_kernels("intel"):
        preload_kernels()


def test_the_kernels_of_a_record_are_looked_for_in_new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def child(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(module.os.environ[VARIABLE])
        assert hasattr(module, command[-1].partition(" import ")[2].partition(";")[0])
        return subprocess.CompletedProcess(command, 0, f"{INTEL if asked[-1] else AMD}, PyTorch AVX512\n".encode())

    monkeypatch.setattr(subprocess, "run", child)
    monkeypatch.setattr(module, "running_kernels", lambda: "others")
    assert (word_for(""), word_for("others"), asked) == ("", "", [])
    assert word_for(f"{INTEL}, PyTorch AVX512") == "intel"
    assert word_for(f"{AMD}, PyTorch AVX512") == ""
    assert word_for("nobody's") is None
    assert asked == ["intel", "intel", "", "intel", ""]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_an_amd_machine_takes_the_kernels_of_intel_where_it_is_asked_to(tmp_path: Path) -> None:
    if not running_kernels().startswith(AMD):
        pytest.skip("needs an AMD machine with PyTorch's MKL")
    wanted = running_kernels().replace(AMD, INTEL)
    assert word_for(wanted) == "intel"
    words = ["dataset=airfoil", "debug=tiny", "device=cpu", f"out={tmp_path}"]
    with asking_kernels("intel"):
        subprocess.run([sys.executable, "-m", "scripts.train", *words], check=True, cwd=module.CODE)
    (report,) = tmp_path.rglob("report.json")
    assert f'"kernels": "{wanted}"' in report.read_text()
