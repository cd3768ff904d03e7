"""What a hostile reader said of protocol 1, and what came out of protocol 2 on it, as numbers for the study's page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from scripts.effects.verdicts import EQUAL, GAINS, LOSES, OVERLAP, UNTOLD, VERDICTS, chosen_erm, sign_text, verdict_name
from scripts.protocol.protocols import Protocol2
from scripts.protocol.rules import BASE
from scripts.records.tables import interval_text
from scripts.study.evidence import Record, Setting

NOTHING = "nothing is trained yet"


def came_out(found: Sequence[Setting], rules: Protocol2, title: Callable[[str], str]) -> dict[str, str]:
    """Return what came out, by the name of the objection.

    Args:
        found: what there is of every setting.
        rules: of protocol 2.
        title: what the page calls a method.
    """
    by_name = {setting.condition.name: setting for setting in found}
    records = [record for setting in found for record in setting.records]
    pair = ("ERM x 3 + C-Mixup x 2", "ERM x 5")
    made: dict[str, Callable[[], str]] = {
        "decay": lambda: decay_chosen(records, title), "chosen": lambda: erm_chosen(found, title),
        "tuned": lambda: rate_factor(records, title), "late": lambda: late_runs(records, rules),
        "small": lambda: "; ".join(verdict_words(by_name[n], rules) for n in ("rows100", "rows100_noise")),
        "overlap": lambda: overlap_counts(found, rules), "power": lambda: power_counts(found, rules),
        "grouped": lambda: verdict_words(by_name["grouped"], rules),
        "random": lambda: verdict_words(by_name["random"], rules),
        "sea": lambda: change_beside(by_name["random"], ("catboost", BASE), rules, title),
        "together": lambda: change_beside(by_name["random"], pair, rules, title),
        "balanced": lambda: verdict_words(by_name["rows100_noise"], rules, "test_balanced"),
        "processors": lambda: processor_kinds(records),
    }  # fmt: skip
    return {name: make() if records else NOTHING for name, make in made.items()}


def chosen_options(records: Iterable[Record], method: str) -> list[list[list[str]]]:
    """Return the words that tuning chose for a method on every split of every table and setting."""
    return [
        list({row["split"]: row["options"] for row in r["seeds"]}.values()) for r in records if r["method"] == method
    ]


def decay_chosen(records: Iterable[Record], title: Callable[[str], str]) -> str:
    """Return how often a weight decay above 0 was chosen, by ERM and by C-Mixup."""
    lines = []
    for method in (BASE, "cmixup"):
        each = [words for own in chosen_options(records, method) for words in own]
        above = sum("train.weight_decay=0.0" not in words for words in each)
        lines.append(f"{title(method)} on {above} of {len(each)} splits")
    return f"decay above 0 was chosen by {lines[0]}, by {lines[1]}"


def erm_chosen(found: Sequence[Setting], title: Callable[[str], str]) -> str:
    """Return how often tuning chose ERM itself, by method."""
    total: dict[str, np.ndarray] = {}
    for setting in found:
        for method in setting.methods:
            total[method] = total.get(method, np.zeros(2, int)) + chosen_erm(
                setting.records, setting.condition.name, method
            )
    lines = (f"{title(method)} {erm} of {splits}" for method, (erm, splits) in total.items() if splits)
    return f"tuning chose ERM's own options on so many splits: {', '.join(lines)}"


def rate_factor(records: Iterable[Record], title: Callable[[str], str]) -> str:
    """Return by what factor the rates lie apart that the splits of a table chose, the median over tables."""
    lines = []
    for method in (BASE, "cmixup"):
        rates = [[float(w[9:]) for words in own for w in words if w.startswith("train.lr=")]
                 for own in chosen_options(records, method)]  # fmt: skip
        lines.append(f"{np.median([max(each) / min(each) for each in rates]):.1f} for {title(method)}")
    return f"the rates that the splits of a table chose lie apart by a factor of {lines[0]}, {lines[1]} (median)"


def late_runs(records: Iterable[Record], rules: Protocol2) -> str:
    """Return how many runs are best in the last epochs of all, so that they might have gone on."""
    each = [(r["table"], row["best_epoch"] > rules.epochs - rules.patience) for r in records for row in r["seeds"]]
    n, tables = sum(end for _, end in each), len({table for table, end in each if end})
    return (
        f"{n} of {len(each)} runs, on {tables} tables, are best in the last {rules.patience} of {rules.epochs} epochs"
    )


def verdict_words(setting: Setting, rules: Protocol2, score: str = "test") -> str:
    """Return the four verdicts over all methods of a setting, in words."""
    total = dict.fromkeys(VERDICTS, 0)
    for method in setting.methods:
        for kind, n in (own.counts() if (own := setting.effect(method, rules, score)) else total).items():
            total[kind] += n
    if not setting.tables:
        return f"{setting.title}: {NOTHING}"
    lines = ", ".join(f"{verdict_name(kind, rules.equal)} {n}" for kind, n in total.items())
    return f"{setting.title} ({setting.progress}, pairs of a method and a table): {lines}"


def overlap_counts(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return how many gains and losses there are, and how many if splits were taken as independent."""
    totals = []
    for each in (OVERLAP, 0.0):
        told = [own.counts() for s in found for m in s.methods if (own := s.effect(m, rules, overlap=each))]
        totals += [sum(one[kind] for one in told) for kind in (GAINS, LOSES)]
    return "{} gains and {} losses; {} and {} if splits were independent".format(*totals)


def power_counts(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return of how many pairs the model says that the effect lies within the size that counts."""
    told = [own.counts() for s in found for m in s.methods if (own := s.effect(m, rules))]
    total = {kind: sum(one[kind] for one in told) for kind in VERDICTS}
    return (
        f"of {sum(total.values())} pairs of a method and a table the effect lies within {rules.equal:g} % on "
        f"{total[EQUAL]}, and cannot be told on {total[UNTOLD]}"
    )


def change_beside(setting: Setting, names: tuple[str, str], rules: Protocol2, title: Callable[[str], str]) -> str:
    """Return what the first of two things changes against the second, over tables."""
    one, other = names
    own = setting.effect(one, rules, base=other)
    if own is None or len(own.means) < 2:
        return f"{setting.title}: {NOTHING}"
    median = np.median(list(own.means.values()))
    return (
        f"{setting.title} ({setting.progress}): {title(one)} against {title(other)} "
        f"{interval_text(own.overall, 1)} %, median {median:+.1f}, below 0 on {sign_text(own.means)}"
    )


def processor_kinds(records: Iterable[Record]) -> str:
    """Return how often the methods of a table and setting ran on different kinds of processor."""
    found: dict[tuple[str, str], set[str]] = {}
    for record in records:
        found.setdefault((record["table"], record["condition"]), set()).add(record.get("device", ""))
    return f"{sum(len(devices) > 1 for devices in found.values())} of {len(found)} tables of a setting mix processors"
