"""Every command line that a page, a docstring, a configuration or the Makefile shows is one that its command takes."""

import importlib
import re
import shlex
import subprocess
from collections import defaultdict
from itertools import takewhile

import pytest

from scripts.config.arguments import parse_args
from scripts.config.compose import CONFIG_DIR, compose_train
from scripts.train import spell_out

ROOT = CONFIG_DIR.parent
SHOWN = [
    "*.md",
    "*.py",
    "*.yaml",
    ".ci/run",
    "Makefile",
    "results/tuned.jsonl",
    ":!tests/**/test_*.py",
    ":!tests/scripts/claims/typed.yaml",
]  # whose sentences are made up
LISTED = subprocess.run(["git", "ls-files", *SHOWN], cwd=ROOT, check=True, capture_output=True, text=True).stdout
TEXTS = {page: (ROOT / page).read_text() for page in LISTED.split() if (ROOT / page).is_file()}
LINE = r"`(?:python|torchrun.*?) -m ((?:scripts|tests)\.\w[^`]*)`|python -m ((?:scripts|tests)\.\w[^`\n;\"]*)"
#: What readers and make fill in, and options of Hydra and of Python.
OWN = r"[A-Z.]+(?:=[A-Z]+)?|key=value|-m|--\w+|\{.*|\$\(.*"


def recipes() -> str:
    """The Makefile with the words that several recipes share, as lines of commands."""
    text = TEXTS["Makefile"]
    for name, words in reversed(re.findall(r"^([A-Z_]+) = (.*)", text, re.MULTILINE)):
        text = text.replace(f"$({name})", words)
    return text.replace("$(PY)", "python").replace('"', "'")


def command_lines() -> dict[str, list[tuple[str, ...]]]:
    """Every line as its page and its words, by module."""
    found = defaultdict(set)
    for page, text in {**TEXTS, "Makefile": recipes()}.items():
        for quoted, bare in re.findall(LINE, text):
            line = re.sub(r"\s*\n#?\s*", " ", quoted) or re.split(r" #|\.\.\. | {2}", bare)[0]
            module, *rest = (word.strip("[]:,") for word in shlex.split(line.rstrip(") ->.")))
            words = [*rest[:1], *takewhile(re.compile(r"[\w.+/]+=").match, rest[1:])]
            # test_adding_parts.py has the parts of the page; setup takes no words, and would install.
            if (page, module) != ("docs/new_method.md", "scripts.train") and module != "scripts.setup":
                found[module].add((page, *(word for word in words if not re.fullmatch(OWN, word))))
    return {module: sorted(lines) for module, lines in found.items()}


@pytest.mark.parametrize(("module", "lines"), command_lines().items())
def test_the_command_takes_every_line(module, lines, monkeypatch):
    room = ROOT.joinpath(*module.split("."), "__main__.py").exists()
    command = importlib.import_module(f"{module}.__main__" if room else module)

    def only_parse(words, keys, about=None, names=()):
        for key, value in parse_args(words, keys, about, names).items():
            own = "/" in value or (CONFIG_DIR / "experiment" / f"{value}.yaml").exists()
            assert key not in names or own or value in re.findall(r"\w+", keys[key]), f"{key}={value}"
        raise SystemExit(0)

    monkeypatch.setattr(command, "parse_args", only_parse, raising=False)
    monkeypatch.setattr("scripts.config.arguments.parse_args", only_parse)
    for page, *words in lines:
        if module == "scripts.train":
            own = [word for word in words if not word.startswith(("hydra/launcher", "hydra.launcher"))]  # of plugins
            compose_train([re.sub(r"range\((\d+).*|,(?!.*\]).*", r"\1", word) for word in spell_out(own)])
            continue
        for first in words[0].split("|") if words else [""]:
            with pytest.raises(SystemExit) as stop:
                command.main([word for word in (first, *words[1:]) if word])
            assert stop.value.code == 0, f"{page}: {module} {words}"


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", TEXTS["Makefile"], re.MULTILINE))
    for page in TEXTS.keys() - {"CHANGELOG.md"}:  # it also says what is gone
        typed = re.sub(r"<span id=.*?</span>", "", TEXTS[page], flags=re.DOTALL)  # methods make no difference there
        named = set(re.findall(r"(?:`|^)make ([a-z][a-z0-9-]*)", typed, re.MULTILINE))
        assert named <= targets, f"{page}: make {' '.join(named - targets)}"
