"""What the study lets one expect on another table, and whether the commands that are printed run as they stand."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.driver.provenance import CODE
from scripts.effects.verdicts import chance_text, mean_text
from scripts.protocol.protocols import load_protocol2
from scripts.study import advise
from scripts.study.__main__ import main
from scripts.study.evidence import ENSEMBLE, Setting


def record(table: str, method: str, test: float, condition: str) -> dict[str, Any]:
    seeds = [{"seed": k, "split": k, "test": test + 0.001 * k * (1 + (method != "erm"))} for k in range(4)]
    return {"table": table, "condition": condition, "method": method, "seeds": seeds}


def test_effects_and_the_range_are_those_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    # ERM's mean error is 0.5, and the differences have mean `shift` and a standard deviation of 0.0013, or 0.26 %
    shifts = {"one": -0.05, "two": 0.0, "three": 0.025, "four": 0.1}
    rules = load_protocol2()
    random = next(c for c in rules.conditions if c.name == "random")
    records = [
        record(t, m, 0.4985 + (s - 0.0015) * (m != "erm"), "random")
        for t, s in shifts.items()
        for m in ("erm", "cmixup")
    ]
    setting = Setting(random, 4, records)
    monkeypatch.setattr(advise, "with_later_splits", lambda: setting)
    said = advise.expected()
    own = setting.effect("cmixup", rules)
    assert own is not None
    assert own.means == {t: pytest.approx(200 * s, abs=1e-6) for t, s in shifts.items()}
    assert "On 4 real tables, each of 4 splits tuned by itself, by a model" in said
    assert f"mean {mean_text(own)}; the direction cannot be told.\n" in said
    assert "It gains 1 % or more on 1 tables, loses as much on 2, lies within on 1, and on 0 that cannot" in said
    new, chances = own.of_new, own.posterior.new.chances
    assert new.low < -10 < 20 < new.high
    assert said.endswith(
        f"A new table gains 1 % or more with probability {chance_text(chances.gain)} and loses as much with "
        f"{chance_text(chances.loss)}. Its effect lies between "
        f"{new.low:+.1f} and {new.high:+.1f} % with probability 0.95."
    )
    assert "averaged networks" not in said
    five = [{**r, "method": ENSEMBLE} for r in records if r["method"] == "cmixup"]
    monkeypatch.setattr(advise, "with_later_splits", lambda: Setting(random, 4, records, five))
    assert f"\nFive averaged networks of ERM: mean {mean_text(own)}; the direction" in advise.expected()


def test_without_two_published_tables_nothing_is_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    random = next(c for c in load_protocol2().conditions if c.name == "random")
    one = [record("one", m, 0.5, "random") for m in ("erm", "cmixup")]
    monkeypatch.setattr(advise, "with_later_splits", lambda: Setting(random, 1, one))
    with pytest.raises(InputError, match="on two tables or more; it does not"):
        advise.expected()


def test_the_printed_commands_train_on_the_table_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(advise, "published_text", lambda: "")
    path = tmp_path / "my table, 1.csv"
    path.write_text("\n".join(["a,my price", *(f"{k % 7},{k}" for k in range(40))]))
    main(["advise", f"table={path}", "target=my price", "dataset.drop=[]"])
    train, collect, tune = (
        shlex.split(line)[2:]
        for line in capsys.readouterr().out.replace("\\\n", "").splitlines()
        if line.startswith("python -m ")
    )
    assert (train[0], collect[0], tune[0]) == ("scripts.train", "scripts.collect", "scripts.tune")
    words = [word for word in train[1:] if not word.startswith(("-m", "method="))]
    job = plan_job(compose_train([*words, "method=cmixup"]))
    assert (job.dataset.path, job.dataset.targets, job.seeds) == (str(path), ("my price",), list(range(10)))
    assert set(words[:4]) <= set(tune)


def test_no_line_is_wider_than_a_terminal_and_a_shell_reads_the_commands() -> None:
    words = ["python -m scripts.train -m", "dataset=csv", f"dataset.path={'my table ' * 6}", *["seeds=0..9"] * 12]
    text = advise.wrap_command(*words)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 2
    assert shlex.split(text.replace("\\\n", "")) == [*words[0].split(), *words[1:]]
    assert max(map(len, advise.wrap_text("word " * 60).splitlines())) <= 80
    assert advise.wrap_command("python", "x" * 90).splitlines() == ["python \\", "    " + "x" * 90]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["table=my.csv"], "target must be given"),
        (["table=none.csv", "target=price"], "none.csv"),
        (["table={}", "target=prize"], "target 'prize' is no column of"),
    ],
)
def test_a_missing_file_or_column_is_one_line_before_any_work(
    words: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(advise, "published_text", lambda: pytest.fail("worked first"))
    path = tmp_path / "my.csv"
    path.write_text("a,price\n1,2\n3,4\n")
    with pytest.raises(SystemExit):
        main(["advise", *(word.format(path) for word in words)])
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line


def test_what_is_printed_is_rendered_and_needs_no_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.csv"
    path.write_text("a,price\n" + "".join(f"{k % 7},{k}\n" for k in range(40)))
    main(["advise", f"table={path}", "target=price"])
    printed = capsys.readouterr().out
    assert " ".join(printed.split()).startswith(" ".join(f"{advise.EXPECTED.read_text()} Nothing measured".split()))
    code = "import sys; import scripts.study.__main__; print(*sorted({'matplotlib', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CODE, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
    monkeypatch.setattr(advise, "EXPECTED", tmp_path / "none")
    with pytest.raises(InputError, match=r"none is missing; make it by `python -m scripts.render`"):
        advise.published_text()
