"""The page of other networks: what mixing changes on a wide network, RealMLP and TabM, where ERM alone is tuned.

Rules: configs/study/network_*.yaml, each committed before its first run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scripts.effects.verdicts import Effect, errors_of, method_effect, sign_text
from scripts.protocol.protocols import Protocol2, rules_named
from scripts.protocol.published import read_store
from scripts.records.register import writes
from scripts.records.tables import markdown_rows
from scripts.study import no_search
from scripts.study.evidence import Record, whole_records
from scripts.study.rows import row_head, table_row

PAGE = "study/networks.md"
NETWORKS = {"network_wide": "A wide network", "network_realmlp": "RealMLP", "network_tabm": "TabM"}
ABOUT = {
    "network_wide": "The study's network with two layers of {model.width} units, not 128.",
    "network_realmlp": "RealMLP (Holzmüller and others 2024): {model.depth} layers of {model.width} units; without "
    "its schedule of rates, label clamp and robust scaling.",
    "network_tabm": "TabM (Gorishniy and others 2025): {model.k} members of {model.depth} layers of {model.width}; "
    "the paper has 32 members of 512.",
}  # fmt: skip
TITLES = {name: no_search.TITLES[name] for name in ("cmixup_alpha02", "cmixup_alpha2", "mixup_alpha02")}
SETTINGS = {"rows100": "100 training rows", "random": "all rows, split at random"}


def effects(name: str) -> Iterator[tuple[str, str, dict[str, Effect]]]:
    """Yield of each setting of a network that is whole its title, its tables in words, and the effect of each arm."""
    rules = rules_named(name)
    records = read_store(rules)
    for condition, title in SETTINGS.items():
        own, tables = whole_records(records, rules, condition)
        if own:
            yield title, tables, {arm: made for arm in TITLES if (made := arm_effect(own, condition, arm, rules))}


def arm_effect(records: Sequence[Record], condition: str, arm: str, rules: Protocol2) -> Effect | None:
    """Return what an arm changes against ERM on the same network."""
    return method_effect(errors_of(records, condition), arm, rules.level, rules.equal)


@writes("results/runs")
def write_page() -> dict[str, str]:
    """Return the page by its path below results/."""
    lines = [
        "# Other networks",
        "",
        "Does mixing help a wider network, or one of today? ERM alone is tuned on each split. Every method trains with",
        "the rate and decay that this chose, and with options that were fixed before the first run. Effects are",
        "against ERM on the same network.",
        "",
    ]
    for name, title in NETWORKS.items():
        rules = rules_named(name)
        about = ABOUT[name]
        for key, value in rules.network.items():
            about = about.replace(f"{{{key}}}", str(value))
        lines += [f"## {title}", "", f"{about} [Rules](../../configs/study/{name}.yaml).", ""]
        found = list(effects(name))
        for setting, tables, each in found:
            body = [[TITLES[arm], *table_row(own), sign_text(own.means)] for arm, own in each.items()]
            lines += [f"### {setting[0].upper()}{setting[1:]} ({tables})", ""]
            lines += [*markdown_rows(["method", *row_head(rules), "below 0 (sign test)"], body), ""]
        if missing := [setting for setting in SETTINGS.values() if setting not in [each[0] for each in found]]:
            lines += [f"Not run yet: {'; '.join(missing)}.", ""]
    lines += [
        "[When does mixing help?](when.md) has the model of effects and the rule of each verdict.",
        "",
        "`python -m scripts.study train rules=network_realmlp` trains these cells; `python -m scripts.render` writes",
        "this page. `python -m scripts.study method=mine.py model=realmlp` [ranks your method](../../docs/bench.md)",
        "there.",
        "",
    ]
    return {PAGE: "\n".join(lines)}
