"""The page of the study without a search: errors are means over weights, and only whole settings have a table."""

import pytest

from scripts.protocol.protocols import rules_named
from scripts.study import no_search, parts


@pytest.mark.parametrize("missing", ["a table", "a method", ""])
def test_only_a_whole_setting_has_a_table(missing, monkeypatch):
    rules = rules_named("no_search")
    names, methods = rules.lite_tables(), list(rules.methods)
    names = names[1:] if missing == "a table" else names
    methods = methods[:-1] if missing == "a method" else methods
    stored = [
        {"table": table, "condition": "rows100", "method": method, "seeds": [
            {"seed": 10 * split + weight, "split": split,
             "test": {"erm": 1.0}.get(method, 0.9) + 0.01 * split * (k + 1) % 0.07}
            for split in range(5) for weight in range(1, 6)]}
        for table in names
        for k, method in enumerate(methods)
    ]  # fmt: skip
    for module in (no_search, parts):
        monkeypatch.setattr(module, "read_store", lambda *_: stored)
    monkeypatch.setattr(no_search, "lead", lambda *_: (0.57, 21, 30))
    page = no_search.write_page()[no_search.PAGE]
    assert page.count("Not run yet.") == (3 if missing else 2)
    assert ("the mean error is lower" in page) == (not missing)
    said = " ".join(page.split())
    assert said.count("the 10 tables with the fewest rows, 5 splits, five sets of initial weights") == int(not missing)
    assert said.count("On test rows: not run yet.") == (2 if missing else 1)
    assert ("On test rows: With alpha 0.2 the mean error is lower: -" in said) == (not missing)


def test_the_lead_on_validation_counts_own_trials_beside_erms_of_the_same_rate():
    def cell(table, method, *values):
        return {"table": table, "method": method, "condition": "rows100", "trials": [{"val": v} for v in values]}

    records = [cell("a", "erm", 1, 1, 1, 1, 1, 1), cell("a", "cmixup", 0, 0.9, 2, 0, 0.9, 0.8)]
    records += [cell("b", "erm", 1, 1, 1, 1, 1, 1), cell("b", "cmixup", 0, 2, 2, 0, 2, 2)]
    records += [{**cell("b", "cmixup", 0, 0, 0, 0, 0, 0), "condition": "random"}]
    share, tables, of = no_search.lead(records, "rows100", "cmixup", shared=1, each=3)
    assert (share, tables, of) == ((3 / 4 + 0) / 2, 1, 2)
