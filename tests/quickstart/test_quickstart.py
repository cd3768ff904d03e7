"""What makes the steps of CI red, planted in small checkouts."""

import csv
import subprocess
import time
from pathlib import Path

import pytest

from tests.quickstart import readme, targets
from tests.quickstart.readme import check_table, first_command
from tests.quickstart.step import REPO, Red, changed
from tests.quickstart.targets import Line, chosen, read, tried

MAKEFILE = """
good: ## Leave nothing
\t@echo fine
\t@touch kept.o
dirty: ## Write a file that git does not ignore
\t@echo more >> {0}
broken: ## Fail
\t@seq 100; echo the reason >&2; exit 3
slow: ## Never end
\t@sleep 60 & echo $$! > $(OUT); wait
inner:
\t@false
"""
REST = "dirty: {not: why}, broken: {not: why}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small repository with targets of every kind."""
    repo = tmp_path / "checkout"
    repo.mkdir()
    (repo / "Makefile").write_text(MAKEFILE.format("tracked"))
    (repo / ".gitignore").write_text("*.o\n")
    (repo / "tracked").write_text("as it was\n")
    git = ["git", "-C", str(repo), "-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *words], check=True)
    return repo


def test_a_target_that_does_its_work_is_green(checkout: Path, tmp_path: Path) -> None:
    assert tried(Line("good"), tmp_path, checkout).endswith(" s  make good")
    assert changed(checkout) == ""


def test_a_target_that_changes_the_tree_is_red(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(Red, match=r"`make dirty` leaves the tree changed:\nM tracked"):
        tried(Line("dirty"), tmp_path, checkout)


def test_a_failing_target_is_red_with_its_last_lines(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(Red, match="`make broken` ended with 2") as caught:
        tried(Line("broken"), tmp_path, checkout)
    assert "the reason" in str(caught.value)
    assert "\n    100\n" in str(caught.value)
    assert "\n    50\n" not in str(caught.value)


def test_a_target_that_does_not_end_is_stopped_with_all_that_it_started(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(Red, match=r"`make slow OUT=.*` has not ended after 1 s and was stopped"):
        tried(Line("slow", "OUT={out}/pid", limit=1), tmp_path, checkout)
    child = int((tmp_path / "pid").read_text())
    for _ in range(100):  # until it is reaped
        if not Path(f"/proc/{child}").exists() or ") Z" in Path(f"/proc/{child}/stat").read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("sleep goes on")


def test_of_a_target_that_is_not_tried_the_recipe_is_expanded(checkout: Path, tmp_path: Path) -> None:
    assert "make -n dirty   (not tried: it is dirty)" in tried(Line("dirty", not_="it is dirty"), tmp_path, checkout)
    assert changed(checkout) == ""
    with pytest.raises(Red, match="No rule to make target"):
        tried(Line("gone", not_="it is gone"), tmp_path, checkout)


def test_every_target_has_one_line_and_every_line_a_target() -> None:
    known = targets.targets((REPO / "Makefile").read_text())
    assert {"help", "test", "reproduce-table1"} < set(known)
    assert [line.target for line in read(targets.TABLE.read_text(), known)]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("good: {with: ''}", "no line for dirty, broken, slow: "),
        (f"{{good: {{with: ''}}, {REST}, slow: {{not: why}}, other: {{not: why}}}}", "lines for other,"),
        (f"{{good: {{with: '', not: why}}, {REST}, slow: {{in_turn: true}}}}", "of good, slow"),
    ],
)
def test_a_missing_spare_or_unclear_line_is_red(table: str, said: str) -> None:
    known = targets.targets(MAKEFILE)
    assert known == ["good", "dirty", "broken", "slow"]
    with pytest.raises(Red, match=said):
        read(table, known)


def test_the_cheap_are_tried_every_day_and_each_of_the_others_every_third() -> None:
    lines = [Line("a"), *(Line(name, in_turn=True) for name in "bcdefgh"), Line("i", not_="why")]
    days = [[line.target for line in chosen(lines, day)] for day in range(738_000, 738_003)]
    assert all({"a", "i"} < set(day) for day in days)
    assert sorted(name for day in days for name in day) == sorted("aaabcdefghiii")
    assert all(4 <= len(day) <= 5 for day in days)


def test_the_first_command_is_the_one_in_readme() -> None:
    assert first_command((REPO / "README.md").read_text()).startswith("make reproduce-table1 ")
    assert first_command("text\n```python\nx\n```\n```bash\nmake other   # it\nmake test\n```\n") == "make other   # it"


def table(path: Path, datasets: dict[str, float], methods: str = "erm,cmixup", n: int = 10) -> Path:
    """Write a table of these mean scores."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["dataset", "method", "metric", "n", "mean", "std"])
        for dataset, mean in datasets.items():
            for method in methods.split(","):
                writer.writerow([dataset, method, "rmse", n, mean, 0.1])
                writer.writerow([dataset, method, "mape", n, 100 * mean, 0.1])
    return path


@pytest.mark.parametrize(
    ("ours", "mirror", "said"),
    [
        ({"datasets": {"airfoil": 2.09, "no2": 0.5}}, True, ""),
        ({"datasets": {"airfoil": 2.0, "no2": 0.5}}, False, ""),
        ({"datasets": {"diabetes": 50.0}}, False, ""),
        ({"datasets": {"diabetes": 50.0}}, True, "has diabetes; airfoil and no2 belong there"),
        ({"datasets": {"airfoil": 2.0}}, False, "has airfoil; "),
        ({"datasets": {"airfoil": 2.11, "no2": 0.5}}, True, "has 2.11 for airfoil cmixup; published: 2.0 ± 0.1"),
        ({"datasets": {"airfoil": float("nan"), "no2": 0.5}}, True, "has nan for airfoil cmixup"),
        ({"datasets": {"airfoil": 2.0, "no2": 0.5}, "methods": "erm"}, True, "has no seeds of airfoil cmixup, not 10"),
        ({"datasets": {"airfoil": 2.0, "no2": 0.5}, "n": 9}, True, "has 9 seeds of airfoil cmixup, not 10"),
    ],
)
def test_the_table_of_the_first_command(tmp_path: Path, ours: dict, mirror: bool, said: str) -> None:
    published = table(tmp_path / "published.csv", {"airfoil": 2.0, "no2": 0.5, "exchange_rate": 1.0})
    trained = table(tmp_path / "ours.csv", **ours)
    if said:
        with pytest.raises(Red, match=said):
            check_table(trained, published, mirror)
    else:
        assert check_table(trained, published, mirror).startswith("2 methods x ")


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("mkdir -p outputs/tables && cp results/tables/table1_paper.csv outputs/tables", ""),
        ("true", "did not write"),
        ("mkdir -p outputs/tables && cp results/tables/table1_paper.csv outputs/tables && touch new", r"\?\? new"),
        ("sleep 60", "has not ended after 1 s"),
    ],
)
def test_the_first_command_as_typed(
    checkout: Path, recipe: str, said: str, capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "results/tables").mkdir(parents=True)
    table(checkout / "results/tables/table1_paper.csv", {"airfoil": 2.0, "no2": 0.5})
    (checkout / "README.md").write_text(f"```bash\n{recipe}   # about a minute\n```\n")
    (checkout / ".gitignore").write_text("outputs/\n")
    monkeypatch.setattr(readme, "LIMIT", 1)
    if said:
        with pytest.raises(Red, match=said):
            readme.main(checkout)
    else:
        readme.main(checkout)
        assert "minutes with its set-up on " in capfd.readouterr().out
