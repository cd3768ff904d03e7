"""Every command line that a page shows, `--help` of every command, and input that a command cannot use."""

import importlib
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts import INTERRUPTED, print_interrupted
from scripts import train as train_module
from scripts.config.arguments import parse_args
from scripts.config.compose import CONFIG_DIR, compose_train, normalize_arguments, option_names

ROOT = CONFIG_DIR.parent
COMMANDS = sorted(path.stem for path in (ROOT / "scripts").glob("[a-z]*.py"))
FOLDERS = [f"{path.parent.name}.__main__" for path in sorted((ROOT / "scripts").glob("*/__main__.py"))]
WIDTH = 80  # of a terminal


# ---- help


@pytest.mark.parametrize("name", [*(name for name in COMMANDS if name != "train"), *FOLDERS])  # Hydra has its own
def test_help_fits_and_never_acts(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    module = importlib.import_module(f"scripts.{name}")
    monkeypatch.setattr("sys.argv", [name, "--help"])
    monkeypatch.setattr("cmixup.files.write_atomically", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        module.main()
    printed = capsys.readouterr()
    too_wide = [line for line in printed.out.splitlines() if len(line) > WIDTH]
    assert (stop.value.code, printed.err, too_wide) == (0, "", [])
    assert len(printed.out) > 100
    assert not list(tmp_path.iterdir())


def test_help_of_train_names_every_option_of_its_groups_and_keys_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["train", "--help"])
    with pytest.raises(SystemExit) as stop:
        train_module.main()
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for group in ("dataset", "method", "model", "method/pairing", "method/mixing", "method/lam", "experiment"):
        (line,) = re.findall(rf"^{group}: (.*)", text, re.MULTILINE)
        assert line.split(", ") == option_names(group)
    keys = compose_train([])
    for key in re.findall(r"^  ([a-z]+)[a-z.]*=  ", text, re.MULTILINE):
        assert key == "table" or key in keys


# ---- the command lines of pages, docstrings, configurations and the Makefile

PAGES = ["*.md", "*.py", "*.yaml", ".ci/run", "Makefile", "results/tuned.jsonl", ":!tests"]
LISTED = subprocess.run(["git", "ls-files", *PAGES], cwd=ROOT, check=True, capture_output=True, text=True).stdout
TEXTS = {page: (ROOT / page).read_text() for page in LISTED.split() if (ROOT / page).is_file()}
LINE = r"`python -m ((?:scripts|tests)\.\w[^`]*)`|python -m ((?:scripts|tests)\.\w[^`\n;\"]*)"
#: What readers and make fill in, and options of Hydra and of Python.
FILLED_IN = r"[A-Z.]+(?:=[A-Z]+)?|key=value|-m|--[\w-]+(?:=.*)?|\{.*|\$\(.*"


def recipes() -> str:
    """The Makefile with the words that several recipes share, as lines of commands."""
    text = re.sub(r"\\\n\s*", "", TEXTS["Makefile"])
    text = re.sub(r"\$\(or \$\(\w+\),([^)]*)\)", r"\1", text)
    text = text.replace("bench $*", "bench train")
    for name, words in reversed(re.findall(r"^([A-Z_]+) += (.*)", text, re.MULTILINE)):
        text = text.replace(f"$({name})", words)
    return text.replace("$(PY)", "python").replace('"', "'")


def command_lines() -> dict[str, list[tuple[str, ...]]]:
    """Every line as its page and its words, by module."""
    by_module = defaultdict(set)
    for page, text in {**TEXTS, "Makefile": recipes()}.items():
        for quoted, bare in re.findall(LINE, text):
            line = re.sub(r"\s*\n#?\s*", " ", quoted) or re.split(r" #|\.\.\. | {2}", bare)[0]
            module, *rest = (word.strip("[]:,") for word in shlex.split(line.rstrip(") ->.")))
            words = [*rest[:1], *takewhile(re.compile(r"[\w.+/]+=").match, rest[1:])]
            # test_adding_parts.py has the parts of the page; setup takes no words, and would install.
            if (page, module) != ("docs/new_method.md", "scripts.train") and module != "scripts.setup":
                by_module[module].add((page, *(word for word in words if not re.fullmatch(FILLED_IN, word))))
    return {module: sorted(lines) for module, lines in by_module.items()}


@pytest.mark.parametrize(("module", "lines"), command_lines().items())
def test_the_command_takes_every_line(
    module: str, lines: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ROOT.joinpath(*module.split("."), "__main__.py").exists()
    command = importlib.import_module(f"{module}.__main__" if folder else module)

    def only_parse(
        words: Sequence[str], keys: Mapping[str, str], about: str | None = None, names: Sequence[str] = ()
    ) -> None:
        for key, value in parse_args(words, keys, about, names).items():
            path = "/" in value or (CONFIG_DIR / "experiment" / f"{value}.yaml").exists()
            assert key not in names or path or value in re.findall(r"\w+", keys[key]), f"{key}={value}"
        raise SystemExit(0)

    monkeypatch.setattr(command, "parse_args", only_parse, raising=False)
    monkeypatch.setattr("scripts.config.arguments.parse_args", only_parse)
    for page, *words in lines:
        if module == "scripts.train":
            plain = [word for word in words if not word.startswith(("hydra/launcher", "hydra.launcher"))]  # of plugins
            compose_train(
                [re.sub(r"range\((\d+).*|,(?!.*\]).*", r"\1", word) for word in normalize_arguments(["-m", *plain])[1:]]
            )
            continue
        for first in words[0].split("|") if words else [""]:
            with pytest.raises(SystemExit) as stop:
                command.main([word for word in (first, *words[1:]) if word])
            assert stop.value.code == 0, f"{page}: {module} {words}"


def test_make_targets_exist() -> None:
    lines = re.findall(r"^([a-z0-9-]+(?: [a-z0-9-]+)*): ", TEXTS["Makefile"], re.MULTILINE)
    experiments = {path.stem.replace("_", "-") for path in (CONFIG_DIR / "experiment").glob("*.yaml")}
    targets = {name for line in lines for name in line.split()} | {f"reproduce-{name}" for name in experiments}
    for page in TEXTS.keys() - {"CHANGELOG.md"}:  # it also says what is gone
        typed = re.sub(r"<span id=.*?</span>", "", TEXTS[page], flags=re.DOTALL)  # methods make no difference there
        named = set(re.findall(r"(?:`|^)make ([a-z][a-z0-9-]*)", typed, re.MULTILINE))
        assert named <= targets, f"{page}: make {' '.join(named - targets)}"


def test_make_hands_values_with_blanks_on_as_one_word() -> None:
    assert not re.findall(r"\$\(MAKE\).* [A-Z]+=\$\(.*", TEXTS["Makefile"])


# ---- input that cannot be used


def bad(command: str, *words: str, message: str) -> Any:
    return pytest.param(command, words, message, id=f"{command} {' '.join(words)}"[:60])


BAD = [
    bad("predict", "run=/nowhere", "table=x.csv", message="it holds no DONE"),
    bad("collect", "/nowhere", "over=method.bandwidth", message="no finished run below /nowhere"),
    bad("collect", "{empty}", message="over must name an option"),
    bad("render", "chek=1", message="did you mean check?"),
    bad("reproduce", "table99", message="table99"),
    bad("reproduce", "table1", "methods=erm,foo", message="methods must be among"),
    bad("reproduce", message="experiment must be one of"),
    bad("tune", "dataset=nowhere", "method=erm", message="dataset must be among"),
    bad("tune", "dataset=no2", "method=erm", "jobs=x", message="jobs must be a whole number"),
    bad("tune", "dataset=no2", "preset=gpu", message="preset must be one of paper, default, got 'gpu'"),
    bad("tune", "dataset=no2,csv", "dataset.path=a", message="dataset must be one for dataset.path=a, got no2,csv"),
    bad("data", "fetsh", message="action must be one of status, fetch"),
    bad("data", "fetch", "datasets=airfol", message="did you mean airfoil?"),
    bad("bandwidth", "bandwidth=1", message="give either dataset"),
    bad("analysis.__main__", "invarance", message="did you mean invariance?"),
    bad("study.__main__", "train", "method=cmixup", "tables=none", message="method must be given without train"),
    bad("train", "method.bandwidth=-1", message="bandwidth must be 0 or more"),
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
    monkeypatch.setenv("CMIXUP_OUT", str(tmp_path / "out"))
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(("command", "words", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    command: str, words: tuple[str, ...], message: str, nothing_yet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        call(command, [word.format(empty=nothing_yet / "empty") for word in words])
    (line,) = capsys.readouterr().err.splitlines()
    assert (stop.value.code, line.startswith("error: ")) == (2, True)
    assert message in line
    assert not (nothing_yet / "out").exists()


def test_ctrl_c_is_one_line_and_130(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop, train_module.user_errors():
        raise KeyboardInterrupt
    assert (stop.value.code, capsys.readouterr().err) == (130, f"{INTERRUPTED}\n")
    print_interrupted(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == f"{INTERRUPTED}\n"


def test_a_python_without_packages_is_one_line_that_names_the_set_up() -> None:
    for module in ("scripts.train", "docs.own_data"):
        command = [sys.executable, "-S", "-m", module]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert re.fullmatch(r"error: No module named '\w+' in .*: `make setup` installs .*\n", done.stderr)


OPTIONS = {"dataset": "the table; default all", "out": "folder; default outputs", "dry_run": "1 trains nothing"}


def test_words_are_read_by_key_and_the_first_ones_by_place() -> None:
    given = parse_args(["table1", "dataset=a,b,a", "out=", "dry_run=1"], {"table": "", **OPTIONS}, None, ["table"])
    assert given == {"table": "table1", "dataset": "a,b,a", "dry_run": "1"}
    assert given.names("dataset", ["a", "b", "c"]) == ["a", "b"]
    assert (given.switch("dry_run"), given.switch("out"), given.numbers("dry_run")) == (True, False, [1])
    assert parse_args(["more.of=1"], {"more.": "options"}, None) == {"more.of": "1"}
    folder = "outputs/runs/bandwidth=0.1,lr=3/seed=0"  # a name with = in it
    assert parse_args([folder, "dataset=a"], OPTIONS | {"run": ""}, None, ["run"]) == {"run": folder, "dataset": "a"}


@pytest.mark.parametrize(
    ("words", "message"), [(["--dataset", "a"], "did you mean dataset=?"),
    (["--dry-run", "1"], "did you mean dry_run=?"), (["datset=a"], "did you mean dataset?"),
    (["a"], "option must be one of"), (["out=a", "out=b"], "out must be given once")],
)  # fmt: skip
def test_a_word_that_is_none_is_refused_with_a_hint(words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        parse_args(words, OPTIONS, None)


# ---- modules that only Unix has


EXTRAS = ("docutils", "fastai", "keras", "lightning", "skorch", "transformers")  # what pages and recipes need beside


@pytest.mark.parametrize("folder", ["docs", pytest.param("examples", marks=pytest.mark.slow), "scripts"])
def test_every_module_can_be_imported_as_on_windows(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def imported() -> dict[str, Any]:
        return {name: module for name, module in sys.modules.items() if name.split(".")[0] == folder}

    for name in ("fcntl", "pwd", "resource"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    known = imported()
    for name in known:
        del sys.modules[name]
    try:
        for path in sorted((ROOT / folder).rglob("*.py")):
            try:
                importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            except ModuleNotFoundError as error:
                if str(error.name).split(".")[0] not in EXTRAS:
                    raise
    finally:  # other tests patch the modules that they know
        for name in imported():
            del sys.modules[name]
        sys.modules.update(known)
