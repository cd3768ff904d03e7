"""The referee's page: each objection, the experiment that answers it, and its result."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.claims.prose import splice_page
from scripts.effects.verdicts import LOWER, chance_text
from scripts.protocol.protocols import Protocol2, load_protocol2
from scripts.protocol.published import FOLDER
from scripts.records.register import writes
from scripts.records.tables import markdown_rows
from scripts.study import elsewhere, likelihood, networks, no_search
from scripts.study.answers import (
    Answer,
    in_a_line,
    of_likelihood,
    on_networks,
    tuned,
    untuned,
    with_more_splits,
)
from scripts.study.evidence import Setting, study_settings
from scripts.study.front import METHOD
from scripts.study.objections import came_out
from scripts.study.rows import method_title
from scripts.study.run_so_far import PARTS as RUN
from scripts.study.run_so_far import all_progress, progress_rows, state_text

PAGE = "study/referee.md"
PARTS = {
    "tuned": "[tuned](when.md)", "untuned": "[without a search](no_search.md)",
    "likelihood": "[likelihood](likelihood.md)",
    **{name: f"[{each}](networks.md)" for name, each in networks.NETWORKS.items()},
}  # fmt: skip


def best(answers: Sequence[Answer]) -> list[str]:
    """Return a row for each setting and arm of C-Mixup, the largest probability of a gain first."""
    order = sorted(answers, key=lambda each: -each.chances[0])
    body = [[PARTS[each.part], each.setting, each.arm, each.size, each.direction,
             *map(chance_text, each.chances)] for each in order]  # fmt: skip
    heads = ["part", "setting", "method", "mean effect", "direction", "a new table gains 1 %", "loses 1 %"]
    return markdown_rows(heads, body)


def results(found: Sequence[Setting], rules: Protocol2) -> dict[str, str]:
    """Return what is filled into the page, by its place."""
    size = f"{rules.equal:g} %"
    others, nats, plain = list(on_networks()), list(of_likelihood()), list(untuned())
    more, there, of = with_more_splits(found[-1], rules)
    noise = [each for each in plain if each.arm == no_search.TITLES["input_noise"]]
    mixed = [each for each in plain if each not in noise]
    named = [Answer("tuned", each.setting, "C-Mixup", each.own) for each in tuned(found, rules, (METHOD,))]
    of_cmixup = [each for each in (*named, *plain, *others, *nats) if each.arm.startswith("C-Mixup")]
    gains = [each for each in of_cmixup if each.chances[0] > 0.5]
    told = [each for each in of_cmixup if each.own.direction() == LOWER]
    run = all_progress()
    return {
        **came_out(found, rules, method_title), "equal_again": f"{rules.equal:g}",
        "no_search": in_a_line(mixed, size), "noise": in_a_line(noise, size),
        **{name: in_a_line([each for each in others if each.part == name], size) for name in networks.NETWORKS},
        "likelihood": in_a_line(nats, f"0.01 {likelihood.UNIT}"),
        "more_splits": in_a_line([Answer("tuned", "all splits", "C-Mixup", more)], size) if more
        else f"Not whole yet: {there} of {of} cells.",
        **{f"{name}_state": state_text(run, title) for name, (title, _) in RUN.items()},
        "run": "\n".join(progress_rows(run)),
        "others": elsewhere.counts_text(elsewhere.read_comparisons()),
        "best": "\n".join(best(of_cmixup)),
        "gains": f"Of {len(of_cmixup)} pairs of a setting and a form of C-Mixup, the mean error is lower in "
        f"{len(told) or 'none'}, and a new table is more likely than not to gain in {len(gains) or 'none'}.",
    }  # fmt: skip


@writes("results/runs", "results/predictions", "results/study/referee.md", "results/study/elsewhere.yaml")
def write_page() -> dict[str, str]:
    """Return the page by its path below results/."""
    made = results(study_settings(), load_protocol2())
    return {PAGE: splice_page((FOLDER / "referee.md").read_text(), made)}
