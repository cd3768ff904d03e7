"""The referee's page: each objection, the experiment that answers it, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scripts.effects.verdicts import (
    EQUAL,
    GAINS,
    LOSES,
    LOWER,
    OVERLAP,
    UNTOLD,
    VERDICTS,
    chance_text,
    chosen_erm,
    sign_text,
    verdict_name,
)
from scripts.protocol.protocols import Protocol2, load_protocol2, rules_named
from scripts.protocol.published import FOLDER, read_store
from scripts.protocol.rules import BASE
from scripts.records.register import writes
from scripts.records.tables import interval_text, markdown_rows
from scripts.report.places import splice_page
from scripts.study import elsewhere
from scripts.study.answers import Answer, in_short, of_part, on_networks, tuned, with_more_splits
from scripts.study.effect_tables import method_title
from scripts.study.evidence import METHOD, MORE_SPLITS, TITLES, Record, Setting, study_settings
from scripts.study.parts import ARMS, LIKELIHOOD, NATS, NETWORKS, NO_SEARCH

PAGE = "study/referee.md"
LINKS = {
    "tuned": "[tuned](when.md)",
    NO_SEARCH: "[without a search](no_search.md)",
    LIKELIHOOD: "[likelihood](likelihood.md)",
    **{name: f"[{title}](networks.md)" for name, title in NETWORKS.items()},
}
NOTHING = "nothing is trained yet"
#: The titles of the parts whose progress the page tells, by their rules.
PARTS = {NO_SEARCH: "No search", MORE_SPLITS: "20 more splits, ERM and C-Mixup", **NETWORKS, LIKELIHOOD: "Likelihood"}
NOISE, NOISY = "Input noise, tuned", "feature_noise"  # the entry of protocol 2 that is that noise
NOISE_SETTINGS = ("random", "grouped")
HEAD = ("part", "rules", "setting", "tables with all methods", "cells")


class Progress(NamedTuple):
    """How far one setting of a part is run.

    Attributes:
        part: its title.
        rules: its file of configs/study.
        setting: in words.
        tables, of: how many have all methods, and how many the rules have.
        cells, planned: how many are published, and how many the rules have.
    """

    part: str
    rules: str
    setting: str
    tables: int
    of: int
    cells: int
    planned: int


def progress_of(part: str, rules: Protocol2, settings: Sequence[str], methods: Sequence[str]) -> Iterator[Progress]:
    """Yield how far each setting of a part is run.

    Args:
        part: its title.
        rules: of it.
        settings: names of conditions.
        methods: which count; all of a setting where none is named.
    """
    there = {(r["table"], r["condition"], r["method"]) for r in read_store(rules, entries=True)}
    for condition in (each for each in rules.conditions if each.name in settings):
        wanted = tuple(methods) or condition.methods
        tables = [cell.table.name for cell in rules.cells(conditions=[condition.name], methods=[BASE])]
        each = [sum((table, condition.name, method) in there for method in wanted) for table in tables]
        yield Progress(
            part, rules.name, TITLES[condition.name], sum(n == len(wanted) for n in each), len(tables), sum(each),
            len(tables) * len(wanted),
        )  # fmt: skip


def all_progress() -> list[Progress]:
    """Return how far each setting of every part is run."""
    found: list[Progress] = []
    for name, title in PARTS.items():
        rules, methods = rules_named(name), (BASE, METHOD) if name == MORE_SPLITS else ()
        found += progress_of(title, rules, [each.name for each in rules.conditions], methods)
    return [*found, *progress_of(NOISE, load_protocol2(), NOISE_SETTINGS, (NOISY,))]


def state_text(every: Sequence[Progress], part: str) -> str:
    """Return how far a part is run, in words."""
    own = [each for each in every if each.part == part]
    if all(each.tables == each.of for each in own):
        return "answered"
    return "; ".join(f"{each.setting}: {each.tables} of {each.of} tables" for each in own)


def progress_rows(every: Sequence[Progress]) -> list[str]:
    """Return a row for each setting of each part."""
    body = [
        [one.part, f"[{one.rules}](../../configs/study/{one.rules}.yaml)", one.setting, f"{one.tables} of {one.of}",
         f"{one.cells} of {one.planned}"] for one in every
    ]  # fmt: skip
    return markdown_rows(HEAD, body, left=3)


def came_out(found: Sequence[Setting], rules: Protocol2) -> dict[str, str]:
    """Return what came out, by the name of the objection.

    Args:
        found: what there is of every setting.
        rules: of protocol 2.
    """
    by_name = {setting.condition.name: setting for setting in found}
    records = [record for setting in found for record in setting.records]
    pair = ("ERM x 3 + C-Mixup x 2", "ERM x 5")
    made: dict[str, Callable[[], str]] = {
        "decay": lambda: decay_chosen(records), "chosen": lambda: erm_chosen(found),
        "tuned": lambda: rate_factor(records), "late": lambda: late_runs(records, rules),
        "small": lambda: "; ".join(verdict_words(by_name[n], rules) for n in ("rows100", "rows100_noise")),
        "overlap": lambda: overlap_counts(found, rules), "power": lambda: power_counts(found, rules),
        "grouped": lambda: verdict_words(by_name["grouped"], rules),
        "random": lambda: verdict_words(by_name["random"], rules),
        "sea": lambda: change_beside(by_name["random"], ("catboost", BASE), rules),
        "together": lambda: change_beside(by_name["random"], pair, rules),
        "balanced": lambda: verdict_words(by_name["rows100_noise"], rules, "test_balanced"),
        "processors": lambda: processor_kinds(records),
    }  # fmt: skip
    return {name: make() if records else NOTHING for name, make in made.items()}


def chosen_options(records: Iterable[Record], method: str) -> list[list[list[str]]]:
    """Return the words that tuning chose for a method on every split of every table and setting."""
    return [
        list({row["split"]: row["options"] for row in r["seeds"]}.values()) for r in records if r["method"] == method
    ]


def decay_chosen(records: Iterable[Record]) -> str:
    """Return how often a weight decay above 0 was chosen, by ERM and by C-Mixup."""
    lines = []
    for method in (BASE, "cmixup"):
        each = [words for own in chosen_options(records, method) for words in own]
        above = sum("train.weight_decay=0.0" not in words for words in each)
        lines.append(f"{method_title(method)} on {above} of {len(each)} splits")
    return f"decay above 0 was chosen by {lines[0]}, by {lines[1]}"


def erm_chosen(found: Sequence[Setting]) -> str:
    """Return how often tuning chose ERM itself, by method."""
    total: dict[str, np.ndarray] = {}
    for setting in found:
        for method in setting.methods:
            total[method] = total.get(method, np.zeros(2, int)) + chosen_erm(
                setting.records, setting.condition.name, method
            )
    lines = (f"{method_title(method)} {erm} of {splits}" for method, (erm, splits) in total.items() if splits)
    return f"tuning chose ERM's own options on so many splits: {', '.join(lines)}"


def rate_factor(records: Iterable[Record]) -> str:
    """Return by what factor the rates lie apart that the splits of a table chose, the median over tables."""
    lines = []
    for method in (BASE, "cmixup"):
        rates = [[float(w[9:]) for words in own for w in words if w.startswith("train.lr=")]
                 for own in chosen_options(records, method)]  # fmt: skip
        lines.append(f"{np.median([max(each) / min(each) for each in rates]):.1f} for {method_title(method)}")
    return f"the rates that the splits of a table chose lie apart by a factor of {lines[0]}, {lines[1]} (median)"


def late_runs(records: Iterable[Record], rules: Protocol2) -> str:
    """Return how many runs are best in the last epochs of all, so that they might have gone on."""
    each = [(r["table"], row["best_epoch"] > rules.epochs - rules.patience) for r in records for row in r["seeds"]]
    n, tables = sum(end for _, end in each), len({table for table, end in each if end})
    return (
        f"{n} of {len(each)} runs, on {tables} tables, are best in the last {rules.patience} of {rules.epochs} epochs"
    )


def total_counts(
    found: Sequence[Setting], rules: Protocol2, score: str = "test", overlap: float = OVERLAP
) -> dict[str, int]:
    """Return how many pairs of a method and a table have each verdict, over all methods of some settings."""
    each = [own for s in found for m in s.methods if (own := s.effect(m, rules, score, overlap=overlap))]
    return {kind: sum(own.counts()[kind] for own in each) for kind in VERDICTS}


def verdict_words(setting: Setting, rules: Protocol2, score: str = "test") -> str:
    """Return the four verdicts over all methods of a setting, in words."""
    if not setting.tables:
        return f"{setting.title}: {NOTHING}"
    total = total_counts([setting], rules, score)
    lines = ", ".join(f"{verdict_name(kind, rules.equal)} {n}" for kind, n in total.items())
    return f"{setting.title} ({setting.progress}, pairs of a method and a table): {lines}"


def overlap_counts(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return how many gains and losses there are, and how many if splits were taken as independent."""
    totals = [total_counts(found, rules, overlap=each)[kind] for each in (OVERLAP, 0.0) for kind in (GAINS, LOSES)]
    return "{} gains and {} losses; {} and {} if splits were independent".format(*totals)


def power_counts(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return of how many pairs the model says that the effect lies within the size that counts."""
    total = total_counts(found, rules)
    return (
        f"of {sum(total.values())} pairs of a method and a table the effect lies within {rules.equal:g} % on "
        f"{total[EQUAL]}, and cannot be told on {total[UNTOLD]}"
    )


def change_beside(setting: Setting, names: tuple[str, str], rules: Protocol2) -> str:
    """Return what the first of two things changes against the second, over tables."""
    one, other = names
    own = setting.effect(one, rules, base=other)
    if own is None or len(own.means) < 2:
        return f"{setting.title}: {NOTHING}"
    median = np.median(list(own.means.values()))
    return (
        f"{setting.title} ({setting.progress}): {method_title(one)} against {method_title(other)} "
        f"{interval_text(own.overall, 1)} %, median {median:+.1f}, below 0 on {sign_text(own.means)}"
    )


def processor_kinds(records: Iterable[Record]) -> str:
    """Return how often the methods of a table and setting ran on different kinds of processor."""
    found: dict[tuple[str, str], set[str]] = {}
    for record in records:
        found.setdefault((record["table"], record["condition"]), set()).add(record.get("device", ""))
    return f"{sum(len(devices) > 1 for devices in found.values())} of {len(found)} tables of a setting mix processors"


def best(answers: Sequence[Answer]) -> list[str]:
    """Return a row for each setting and arm of C-Mixup, the largest probability of a gain first."""
    order = sorted(answers, key=lambda each: -each.chances[0])
    body = [[LINKS[each.part], each.setting, each.arm, each.size, each.direction,
             *map(chance_text, each.chances)] for each in order]  # fmt: skip
    heads = ["part", "setting", "method", "mean effect", "direction", "a new table gains 1 %", "loses 1 %"]
    return markdown_rows(heads, body, left=3)


def results(found: Sequence[Setting], rules: Protocol2) -> dict[str, str]:
    """Return what is filled into the page, by its place."""
    size = f"{rules.equal:g} %"
    others, nats, plain = list(on_networks()), list(of_part(LIKELIHOOD)), list(of_part(NO_SEARCH))
    more, there, of = with_more_splits(rules)
    noise = [each for each in plain if each.arm == ARMS["input_noise"]]
    mixed = [each for each in plain if each not in noise]
    named = [Answer("tuned", each.setting, "C-Mixup", each.own) for each in tuned(found, rules, (METHOD,))]
    of_cmixup = [each for each in (*named, *plain, *others, *nats) if each.arm.startswith("C-Mixup")]
    gains = [each for each in of_cmixup if each.chances[0] > 0.5]
    told = [each for each in of_cmixup if each.own.direction() == LOWER]
    run = all_progress()
    return {
        **came_out(found, rules), "equal_again": f"{rules.equal:g}",
        "no_search": in_short(mixed, size), "noise": in_short(noise, size),
        **{name: in_short([each for each in others if each.part == name], size) for name in NETWORKS},
        "likelihood": in_short(nats, f"0.01 {NATS}"),
        "more_splits": in_short([Answer("tuned", "all splits", "C-Mixup", more)], size) if more
        else f"Not whole yet: {there} of {of} cells.",
        **{f"{name}_state": state_text(run, title) for name, title in PARTS.items()},
        "run": "\n".join(progress_rows(run)),
        "others": elsewhere.counts_text(elsewhere.read_comparisons()),
        "best": "\n".join(best(of_cmixup)),
        "gains": f"Of {len(of_cmixup)} pairs of a setting and a form of C-Mixup the mean error is lower in "
        f"{len(told) or 'none'}. A new table is more likely than not to gain in {len(gains) or 'none'}.",
    }  # fmt: skip


@writes
def write_page() -> dict[str, str]:
    """Return the page by its path below results/."""
    made = results(study_settings(), load_protocol2())
    return {PAGE: splice_page((FOLDER / "referee.md").read_text(), made)}
