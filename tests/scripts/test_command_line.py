"""What every command does with `--help`, and with input that it cannot use."""

import importlib
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import scripts
from cmixup.errors import InputError
from scripts import train as train_module
from scripts.config.arguments import parse_args
from scripts.config.compose import compose_train
from scripts.driver.cli import in_width
from scripts.driver.signals import INTERRUPTED, handle_sigterm, print_interrupted

REPO = Path(__file__).resolve().parents[2]
COMMANDS = sorted(path.stem for path in Path(train_module.__file__).parent.glob("[a-z]*.py"))


ROOMS = [f"{path.parent.name}.__main__" for path in Path(train_module.__file__).parent.glob("*/__main__.py")]


@pytest.mark.parametrize("name", [*(name for name in COMMANDS if name != "train"), *ROOMS])  # Hydra has its own
def test_help_never_acts(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    module = importlib.import_module(f"scripts.{name}")
    monkeypatch.setattr("sys.argv", [name, "--help"])
    monkeypatch.setattr("cmixup.files.write_atomically", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        module.main()
    printed = capsys.readouterr()
    assert (stop.value.code, printed.err) == (0, "")
    assert len(printed.out) > 100
    assert not list(tmp_path.iterdir())


def bad(command: str, *words: str, said: str) -> Any:
    return pytest.param(command, words, said, id=f"{command} {' '.join(words)}"[:60])


BAD = [
    bad("predict", said="run must name"),
    bad("predict", "run=/nowhere", "table=x.csv", said="no such folder"),
    bad("predict", "run=/tmp", said="table must name"),
    bad("predict", "run=/tmp", "table", said="got 'table'"),
    bad("collect", "/nowhere", "over=method.bandwidth", said="folder must exist"),
    bad("collect", "{empty}", "over=seed", said="no finished run below"),
    bad("collect", "{empty}", said="over must name an option"),
    bad("render", "chek=1", said="did you mean check?"),
    bad("render", "page", said="what must be one of files, claims"),
    bad("reproduce", "table99", said="table99"),
    bad("reproduce", "table1", "budget=long", said="budget must be a number, got 'long'"),
    bad("reproduce", "table1", "budget=-1", said="budget must be"),
    bad("reproduce", "table1", "budget=nan", said="budget must be"),
    bad("reproduce", "table1", "seeds=1..x", said="seeds must be a range"),
    bad("reproduce", "table1", "device=tpu", said="device must be auto"),
    bad("reproduce", "table1", "methods=erm,foo", said="methods must be among"),
    bad("reproduce", "table1", "datasets=foo", said="'foo'"),
    bad("reproduce", "ablation_ood", "preset=tuned", said="preset must be paper"),
    bad("reproduce", said="experiment must be one of"),
    bad("tune", "dataset=nowhere", "method=erm", said="dataset must be among"),
    bad("tune", "dataset=no2", "method=erm", "jobs=x", said="jobs must be a whole number"),
    bad("tune", "dataset", said="got 'dataset'"),
    bad("tune", "dataset=no2", "method=cmix", said="method must be among"),
    bad("tune", "method=erm", said="dataset must be among"),
    bad("tune", "seed=3", said="got 'seed=3'"),
    bad("tune", "dataset=no2", "preset=gpu", said="preset must be one of paper, default, cpu, got 'gpu'"),
    bad("tune", "dataset=no2,csv", "dataset.path=a", said="are for one of them, got dataset.path=a for no2,csv"),
    bad("data", "fetsh", said="action must be one of status, fetch, render"),
    bad("data", "fetch", "datasets=airfol", said="did you mean airfoil?"),
    bad("data", "render", "datasets=airfoil", said="datasets must be among"),
    bad("bandwidth", "dataset=nowhere", said="dataset must be among"),
    bad("bandwidth", "labels=/nowhere.csv", said="/nowhere.csv"),
    bad("bandwidth", "bandwidth=1", said="give either dataset"),
    bad("measure.__main__", "invarance", said="did you mean invariance?"),
    bad("measure.__main__", "theory", "seed=2", said="did you mean seeds?"),
    bad("measure.__main__", "theory", "seeds=1", said="seeds must be 2 or more"),
    bad("measure.__main__", "invariance", "split=train", said="option must be one of out=, "),
    bad("train", "weights=maybe", said="weights must be true or false, got 'maybe'"),
    bad("train", "logger=tensorboard", said="logger must be one of wandb, wandb_files, none"),
    bad("train", "threads=0", said="threads must be a whole number, 1 to 1024"),
    bad("train", "seeds=5..2", said="seeds must be a range"),
    bad("train", "method.bandwidth=-1", said="bandwidth must be 0 or more"),
    bad("train", "preset=papr", said="preset must be one of"),
    bad("train", "checkpoint_every=-1", said="checkpoint_every must be 0"),
]


def call(command: str, words: list[str]) -> None:
    if command == "train":
        with train_module.user_errors():
            train_module.run_training(compose_train(words))
    else:
        importlib.import_module(f"scripts.{command}").main(words)


@pytest.fixture
def nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `out` is where runs would go, with an empty folder beside it."""
    monkeypatch.delenv("CMIXUP_TRACEBACK", raising=False)
    monkeypatch.setenv("CMIXUP_OUT", str(tmp_path / "out"))
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(("command", "words", "said"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    command: str, words: tuple[str, ...], said: str, nothing_yet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        call(command, [word.format(empty=nothing_yet / "empty") for word in words])
    (line,) = capsys.readouterr().err.splitlines()
    assert (stop.value.code, line.startswith("error: ")) == (2, True)
    assert said in line
    assert not (nothing_yet / "out").exists()


def test_an_error_is_broken_between_words_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "error: one two three\n  a/path/that/is/longer: no"
    assert in_width(text) == text
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "26")
    assert in_width(text).splitlines() == ["error: one two three", "  a/path/that/is/longer:", "  no"]


def test_ctrl_c_is_one_line_and_130(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop, train_module.user_errors():
        raise KeyboardInterrupt
    assert (stop.value.code, capsys.readouterr().err) == (130, f"{INTERRUPTED}\n")
    print_interrupted(KeyboardInterrupt, KeyboardInterrupt(), None)  # type: ignore[arg-type]
    assert capsys.readouterr().err == f"{INTERRUPTED}\n"


def test_a_command_hears_signals_before_it_has_imported_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "argv", ["-m"])
    before = signal.getsignal(signal.SIGTERM)
    try:
        importlib.reload(scripts)
        assert sys.excepthook is print_interrupted
        assert signal.getsignal(signal.SIGTERM) is handle_sigterm.__globals__["_end_process"]
    finally:
        signal.signal(signal.SIGTERM, before)


KEYS = {"dataset": "the table; default all", "out": "folder; default outputs", "dry_run": "1 trains nothing"}


def test_help_prints_the_docstring_and_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_args(["--help"], KEYS, "Does a thing.")
    printed = (
        "Does a thing.\n\n  dataset= the table; default all\n  out=     folder; default outputs\n"
        "  dry_run= 1 trains nothing\n"
    )
    assert (stop.value.code, capsys.readouterr().out) == (0, printed)


def test_words_are_read_by_key_and_the_first_ones_by_place() -> None:
    given = parse_args(["table1", "dataset=a,b", "out=", "dry_run=1"], {"table": "", **KEYS}, None, ["table"])
    assert given == {"table": "table1", "dataset": "a,b", "dry_run": "1"}
    assert given.listed("dataset", ["a", "b", "c"]) == ["a", "b"]
    assert (given.switch("dry_run"), given.switch("out"), given.number("out", 2.5)) == (True, False, 2.5)
    assert parse_args(["more.of=1"], {"more.": "options"}, None) == {"more.of": "1"}
    folder = "outputs/runs/bandwidth=0.1,lr=3/seed=0"  # a name with = in it
    assert parse_args([folder, "dataset=a"], KEYS | {"run": ""}, None, ["run"]) == {"run": folder, "dataset": "a"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dataset", "a"], "did you mean dataset=?"),
        (["--dry-run", "1"], "did you mean dry_run=?"),
        (["datset=a"], "did you mean dataset?"),
        (["a"], "option must be one of"),
        (["out=a", "out=b"], "out must be given once"),
    ],
)
def test_a_word_that_is_none_is_refused_with_a_hint(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        parse_args(words, KEYS, None)


def test_a_key_of_the_last_version_still_works_and_the_new_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    keys = {"submission": "folder"}
    assert parse_args(["entry=out/mine"], keys, None) == {"submission": "out/mine"}
    assert "entry= is now submission=" in capsys.readouterr().err
    assert parse_args(["submission=out/mine"], keys, None) == {"submission": "out/mine"}
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match=r"submission must be given once, got 'entry=b' too"):
        parse_args(["submission=a", "entry=b"], keys, None)
