"""Commands in environments that nobody has at home: they end as they do everywhere, or say in a line why not.

README's first command is among them (`scripts.reproduce table1`, one method and two seeds of few epochs of a twin), and
a run with the default logger.
"""

import ctypes
import errno
import fcntl
import os
import pwd
import resource
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from scripts.driver.logger import RUN_ID
from scripts.driver.provenance import CODE
from scripts.driver.runs import REPORT
from tests.robustness.base import MOST, Trial, note_progress
from tests.robustness.commands import TINY, Command, content, differences, half_files, import_all, tail
from tests.robustness.scenes import shorten

WHAT = (
    "a run, with and without the default logger, and the first command in an environment that is cut down: it ends "
    "as undisturbed, or with one line and status 2, and then ends as undisturbed outside it; what it writes lies below "
    "its folder"
)
CLONE_NEWNS, MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 1, 32, 4096, 16384, 1 << 18
FILES_OF_OTHERS, PROCESSES_OF_OTHERS = (1, 2, 3), (19,)  # capabilities: to write, read and own the ones, see the others
NEW_EPOCH = 3  # of 4: when a folder is taken away
GIVEN = ("dataset=no2", "method=cmixup", "train.epochs=4", "seeds=0..1")


@dataclass(frozen=True)
class Setting:
    """An environment.

    Attributes:
        make: makes it, in the process of the command, of the trial's folder.
        works: whether the command must end well; otherwise one line is as good.
        logger: whether the setting is of the default logger, without which it changes nothing.
        alone: whether a run must end well where the first command may end with a line: it needs other processes.
        simulated: whether functions of Python stand for what the machine would do.
        kernels: PyTorch's own, as `ATEN_CPU_CAPABILITY` names them, where they are not those of the machine.
    """

    make: Callable[[Path], object]
    works: bool = True
    logger: bool = False
    alone: bool = False
    simulated: bool = False
    kernels: str = ""


def _called(name: str, *given: Any) -> None:
    """Call a function of the C library.

    Raises:
        OSError: it failed.
    """
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*given):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def _mount(*mounts: tuple[Any, ...]) -> None:
    """Mount what this process alone sees: device, place, kind, flags and options of each."""
    _called("unshare", CLONE_NEWNS)
    for mount in ((None, b"/", None, MS_REC | MS_PRIVATE, None), *mounts):
        _called("mount", *mount)


def _read_only(place: Path) -> None:
    where = str(place).encode()
    _mount((where, where, None, MS_BIND, None), (None, where, None, MS_BIND | MS_REMOUNT | MS_RDONLY, None))


def _drop(capabilities: tuple[int, ...]) -> None:
    """Give up what root may do, here and in what is started."""
    for capability in capabilities:
        _called("prctl", 24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _called("capget", header, sets)
    for k in range(3):
        sets[k] &= ~sum(1 << capability for capability in capabilities)
    _called("capset", header, sets)


def _as_a_user(folder: Path) -> None:
    """Give up what root may do to the files of others, with a home that is read-only."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    home.chmod(0o555)
    os.environ["HOME"] = str(home)
    _drop(FILES_OF_OTHERS)


def _hidden_processes(_: Path) -> None:
    """Mount /proc as machines with many users do, and give up the group and right of root that show all the same."""
    _mount((b"proc", b"/proc", b"proc", 0, b"hidepid=2,gid=65534"))
    _drop(PROCESSES_OF_OTHERS)
    if Path("/proc/1/stat").exists():
        raise AssertionError("the processes of others are seen")


def _refusing(number: int) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return refuse


def _patched(module: Any, name: str, number: int) -> Callable[[Path], None]:
    return lambda _: setattr(module, name, _refusing(number))


def _output_to(path: str) -> Callable[[Path], None]:
    def make(_: Path) -> None:
        if path:
            os.dup2(os.open(path, os.O_WRONLY), 1)
            return
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)

    return make


def _closed(*handles: int) -> Callable[[Path], None]:
    def make(_: Path) -> None:
        for handle in handles:
            os.close(handle)
        if 1 in handles:
            sys.stdout = sys.stderr = None

    return make


def _taken_away(folder: Path) -> None:
    """Remove the out folder while it trains."""
    job: Any = sys.modules["scripts.driver.execute"]
    train = job.train

    def training(*given: Any, on_epoch: Callable[..., None], **more: Any) -> Any:
        def each(epoch: int, rows: Any) -> None:
            if epoch == NEW_EPOCH:
                shutil.rmtree(folder / "out")
            on_epoch(epoch, rows)

        return train(*given, on_epoch=each, **more)

    job.train = training


def _set(**variables: str) -> Callable[[Path], None]:
    return lambda _: os.environ.update(variables)


def _limit(kind: int, number: int) -> Callable[[Path], None]:
    return lambda _: resource.setrlimit(kind, (number, number))


def _no_threads(_: Path) -> None:
    def refuse(*_: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    thread: Any = threading.Thread
    thread.start = refuse


def _nobody(_: Path) -> None:
    """Leave a user that no file of the machine knows, as containers do."""

    def refuse(user: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {user}")

    os.environ.pop("HOME", None)
    pwd.getpwuid = refuse


def _ascii(_: Path) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="ascii", errors="strict")  # type: ignore[union-attr]


def _out_read_only(folder: Path) -> None:
    (folder / "out").mkdir()
    _read_only(folder / "out")


SETTINGS = {
    "home read-only, as a user": Setting(_as_a_user, logger=True),
    "home is no folder": Setting(_set(HOME="/dev/null/home"), logger=True),
    "home unset": Setting(lambda _: os.environ.pop("HOME", None), logger=True),
    "TMPDIR gone": Setting(_set(TMPDIR="/nowhere"), logger=True),
    "checkout read-only": Setting(lambda _: _read_only(CODE)),
    "out read-only": Setting(_out_read_only, works=False),
    "out is a file": Setting(lambda folder: (folder / "out").touch(), works=False),
    "out removed while it trains": Setting(_taken_away),
    "processes of others hidden": Setting(_hidden_processes),
    # PyTorch reads the instructions of the processor in /proc/cpuinfo; its report names the kernels.
    "no /proc": Setting(lambda _: _mount((b"tmpfs", b"/proc", b"tmpfs", 0, None)), kernels="default"),
    "umask 077": Setting(lambda _: os.umask(0o077)),
    "umask 000": Setting(lambda _: os.umask(0o000)),
    "no hard links": Setting(_patched(os, "link", errno.EPERM), simulated=True),
    "no locks": Setting(_patched(fcntl, "flock", errno.EOPNOTSUPP), simulated=True),
    "no fsync": Setting(_patched(os, "fsync", errno.EINVAL), simulated=True),
    "closed pipe": Setting(_output_to("")),
    "full stdout": Setting(_output_to("/dev/full"), works=False),
    "stdin closed": Setting(_closed(0)),
    "stdin, stdout and stderr closed": Setting(_closed(0, 1, 2)),
    "64 open files": Setting(_limit(resource.RLIMIT_NOFILE, 64)),
    "files of 4 kB at most": Setting(_limit(resource.RLIMIT_FSIZE, 4096), works=False),
    "no more processes": Setting(_patched(os, "fork", errno.EAGAIN), simulated=True, alone=True),
    "no more threads": Setting(_no_threads, simulated=True, alone=True),
    "no home and no such user": Setting(_nobody, simulated=True),
    "a stdout of ASCII": Setting(_ascii),
    "a tag of 70 letters": Setting(_set(WANDB_TAGS="x" * 70), works=False, logger=True),
    "a time that is none": Setting(_set(WANDB_INIT_TIMEOUT="abc"), works=False, logger=True),
    "a switch that is none": Setting(_set(WANDB_SILENT="maybe"), works=False, logger=True),
}


#: What is run, by name.
RUN, LOGGED, FIRST = "a run", "a run with the default logger", "the first command"


def command(out: Path, kind: str, setting: Setting | None = None, kernels: str = "") -> Command:
    """Return a command, in a setting or with kernels that PyTorch would not take."""
    logger = ("logger=none",) if kind == RUN else ()
    words = (*TINY[:1], *logger, *GIVEN, f"out={out}")
    module = "scripts.train"
    if kind == FIRST:
        module, words = "scripts.reproduce", ("table1", "seeds=2", "datasets=no2", "methods=erm", f"out={out}")

    def make() -> None:
        for name in [name for name in os.environ if name.startswith("WANDB_")]:
            del os.environ[name]
        if kernels:
            os.environ["ATEN_CPU_CAPABILITY"] = kernels
        if kind == FIRST:
            shorten()
        if setting:
            setting.make(out.parent)

    return Command(module, words, make)


def runs(out: Path) -> dict[str, Any]:
    """Return what runs hold below a folder, but for how they were logged."""
    found = {name: value for name, value in content(out / "runs").items() if Path(name).name != RUN_ID}
    for name, value in found.items():
        if name.endswith(".yaml"):
            found[name] = value.replace(b"logger: wandb", b"logger: none").replace(str(out).encode(), b"OUT")
        if name.endswith(REPORT):
            value["config"]["logger"] = "none"
    return found


def undisturbed(folder: Path, kind: str, kernels: str) -> dict[str, Any]:
    """Return what a command gives in no setting.

    Raises:
        RuntimeError: it does not end well.
    """
    if code := command(folder / "out", kind, kernels=kernels).run(folder / "log"):
        raise RuntimeError(f"the undisturbed command ended with {code}: {tail(folder / 'log')}")
    return runs(folder / "out")


def attempt(name: str, kind: str, reference: dict[str, Any], folder: Path) -> str:
    """Run a command in a setting; return what was wrong, "-" where it cannot be made here, or an empty text."""
    setting, out, log = SETTINGS[name], folder / "out", folder / "log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    code, text = command(out, kind, setting).run(log), log.read_text()
    if "Operation not permitted" in text and "OSError" in text:
        return "-"
    said = [line for line in text.splitlines() if line.startswith("error: ")]
    works = setting.works and not (setting.alone and kind == FIRST)
    wrong = []
    if "Traceback" in text or "Logging error" in text:
        wrong.append(f"a traceback: {tail(log)}")
    if (code or said) and (works or code != 2 or len(said) != 1):
        wrong.append(f"ended with {code} and {len(said)} lines: {tail(log)}")
    if more := sorted(path.name for path in folder.iterdir() if path.name not in ("out", "log", "home")):
        wrong.append(f"wrote outside its folder: {more}")
    if out.is_file():
        out.unlink()
    if not code:
        wrong += [f"not as undisturbed: {one}" for one in differences(runs(out), reference)]
        modes = {path.stat().st_mode & 0o777 for path in out.rglob("seed=*/*") if path.is_file()}
        if modes - {{"umask 077": 0o600, "umask 000": 0o666}.get(name, 0o644)}:
            wrong.append(f"files have the modes {[f'{mode:o}' for mode in modes]}")
    wrong += [f"half a file: {path}" for path in half_files(out / "runs")]
    if code := command(out, kind if kind == FIRST else RUN).run(log):
        wrong.append(f"ended with {code} outside it: {tail(log)}")
    wrong += [f"not as undisturbed outside it: {one}" for one in differences(runs(out), reference)]
    return f"{kind}, {name}: {'; '.join(wrong)}" if wrong else ""


def run(count: int, seed: int, folder: Path) -> Trial:
    """Run a command `count` times, in turns over all commands and settings."""
    began, failures, left_out = time.perf_counter(), list[str](), set[str]()
    import_all()
    os.umask(0o022)
    pairs = [(name, kind) for kind in (LOGGED, RUN, FIRST) for name, setting in SETTINGS.items()
             if kind == LOGGED or not setting.logger]  # fmt: skip
    references, tried = dict[tuple[str, str], dict[str, Any]](), 0
    for k in range(count):
        name, kind = pairs[(k + seed) % len(pairs)]
        kernels, own = SETTINGS[name].kernels, FIRST if kind == FIRST else RUN
        if (own, kernels) not in references:
            references[own, kernels] = undisturbed(folder / f"whole {own} {kernels}", own, kernels)
        wrong = attempt(name, kind, references[own, kernels], folder / "cut")
        left_out |= {name} if wrong == "-" else set()
        tried += wrong != "-"
        failures += [wrong] if wrong not in ("", "-") else []
        note_progress(folder, k + 1, count)
    simulated = [name for name, setting in SETTINGS.items() if setting.simulated]
    notes = f"{len(pairs)} pairs of three commands and {len(SETTINGS)} settings in turns: {', '.join(SETTINGS)}; "
    notes += f"simulated by a function: {', '.join(simulated)}"
    others = [f"{name}, whose undisturbed run has kernels {setting.kernels}"
              for name, setting in SETTINGS.items() if setting.kernels]  # fmt: skip
    notes += f"; {'; '.join(others)}, as its report says"
    notes += f"; not tried, as it takes root: {', '.join(sorted(left_out))}" if left_out else ""
    return Trial("environments", WHAT, tried, tried - len(failures), tuple(failures[:MOST]),
                 time.perf_counter() - began, notes)  # fmt: skip
