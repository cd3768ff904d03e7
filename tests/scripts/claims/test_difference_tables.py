"""Tables of the differences behind claims: a row a combination, and no row for a claim that fails."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml

from cmixup.errors import InputError
from scripts.claims.check import Case, Check, Claim, Verdict
from scripts.claims.difference_tables import claim_tables, verdict_word
from scripts.claims.statistic import Number

NUMBERS = {"NO2": Number(-0.2, n=10, low=-0.3, high=-0.1), "Airfoil": Number(0.1, n=10, low=-0.1, high=0.3)}


def verdict(name: str, *, holds: bool = True, times: str = "") -> Verdict:
    """Return a claim's verdict with a difference for two datasets, of which one is below 0, and a published number."""
    cases = [Case(label, {"d": number}, number.high < 0) for label, number in NUMBERS.items()]
    rules = ["d below 0"] if times else []
    shown = cases if times else [Case(case.label, case.numbers, holds) for case in cases]
    printed = [Case("", {"paper": Number(-0.5)}, holds=True)]
    checks = [(Check({}, [], {"d": {}}, rules, times), shown), (Check({}, [], {"paper": {}}, []), printed)]
    return Verdict(Claim(name, "", [check for check, _ in checks]), "text", checks)


def tables(tmp_path: Path, *entries: dict[str, object]) -> list[str]:
    """Return the lines of a table over three claims."""
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"tables": {"one": list(entries)}}))
    verdicts = [verdict("a"), verdict("counted", times="== 1"), verdict("false", holds=False)]
    return claim_tables(verdicts, path)["one"].splitlines()


def test_a_row_a_combination_with_its_verdict(tmp_path: Path) -> None:
    entry = {"claim": "a", "number": "d", "says": "C-Mixup minus ERM", "digits": 2}
    assert tables(tmp_path, entry) == [
        "| difference | n | mean | 95 % interval | verdict |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| C-Mixup minus ERM: NO2 | 10 | -0.20 | [-0.30, -0.10] | lower |",
        "| C-Mixup minus ERM: Airfoil | 10 | +0.10 | [-0.10, +0.30] | cannot be told |",
    ]
    with_paper, plain = tables(tmp_path, {**entry, "paper": "paper"}, {**entry, "claim": "counted"})[2::2]
    assert with_paper == "| C-Mixup minus ERM: NO2 | 10 | -0.20 | [-0.30, -0.10] | -0.50 | lower |"
    assert plain == "| C-Mixup minus ERM: NO2 | 10 | -0.20 | [-0.30, -0.10] | — | lower |"


def test_a_claim_that_fails_and_names_that_are_none(tmp_path: Path) -> None:
    (row,) = tables(tmp_path, {"claim": "false", "number": "d", "says": "C-Mixup minus ERM"})[2:]
    assert row.startswith("| **[false: the records no longer support")
    with pytest.raises(InputError, match="nobody, which is no claim"):
        tables(tmp_path, {"claim": "nobody", "number": "d", "says": ""})
    with pytest.raises(InputError, match="e, which is no number of claim a"):
        tables(tmp_path, {"claim": "a", "number": "e", "says": ""})


def test_verdicts() -> None:
    assert verdict_word(Number(1.0, n=3, low=0.5, high=1.5)) == "higher"
    assert verdict_word(Number(1.0)) == "—"
    assert math.isnan(Number(1.0).low)
