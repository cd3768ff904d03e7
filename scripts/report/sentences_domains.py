"""Sentences on new domains: Table 3 on Crime and SkillCraft, one change at a time, over ten seeds."""

from __future__ import annotations

import itertools

from scripts.report.evidence import Evidence, Query, is_higher, is_lower, minus, require, sentence
from scripts.report.rendering import joined_words
from scripts.report.sentences_tables import FINDINGS, bandwidth_gains, n_lower
from scripts.stats.intervals import Interval, interval_text, of_interval

DOMAINS = ("crime", "skillcraft")
OTHERS = ("irm", "ib_irm", "vrex", "coral", "drnn", "group_dro", "fish", "mixup", "manifold_mixup", "cmixup")
TRACKED = {"train.track": ["test"]}  # what runs of ablation_ood have that change nothing
ONE_ORDER = {"dataset.row_order": "released", "train.shuffle": False, "train.drop_last": True}


def changed(e: Evidence, dataset: str, method: str, options: Query, base: str = "") -> Interval:
    """Return what options change of a method under preset paper, or of its difference to ERM's run with `base`."""
    first = e.runs("ablation_ood", dataset, "paper", method, options)
    return minus(first, e.runs("ablation_ood", dataset, "paper", base or method, TRACKED))


@sentence(FINDINGS)
def skillcraft_bandwidths(e: Evidence) -> str:
    """SkillCraft at the paper's bandwidth and at wider ones."""
    self_drawn = e.runs("table3", "skillcraft", "paper", "cmixup", metric="self_probability", split="train").mean
    gains, paper = bandwidth_gains(e), e.paper("table3", "skillcraft", "cmixup").mean
    six, lowest = (
        gains["skillcraft", 6.0],
        e.runs("figure_bandwidth", "skillcraft", "paper", "cmixup", {"method.bandwidth": 6.0}),
    )
    p = of_interval(six).chance * len(gains)
    require(
        self_drawn > 0.99 and is_lower(six) and p < 0.05 and lowest.mean > paper, "SkillCraft: better at 6, not in size"
    )
    return (
        f"**SkillCraft: not with the paper's bandwidth, and not in size.** With that (5e-4) {self_drawn:.1%} of the "
        f"draws are a row itself, which is ERM. At 6 C-Mixup minus ERM is {interval_text(six)} (p is {p:.3f} after "
        f"Bonferroni's correction for {len(gains)} bandwidths), but 6 was chosen by the test error, and its "
        f"{lowest.mean:.3f} stays above the published {paper:.3f}."
    )


@sentence(FINDINGS)
def crime_pooled(e: Evidence) -> str:
    """Crime in pooled error, and by the best epoch on test."""
    lead, paper = e.gain("table3", "crime", "paper", "cmixup"), e.paper("table3", "crime", "cmixup").mean
    best = {m: e.rows("curves/ablation_ood/{dataset}/{method}.csv", "test_rmse", take="min", dataset="crime", method=m,
                      preset="paper", options="train.track=['test']").mean for m in ("cmixup", "erm")}  # fmt: skip
    ours = e.runs("table3", "crime", "paper", "cmixup").mean
    require(
        not is_lower(lead) and ours > paper and best["cmixup"] < paper + 0.003, "Crime: near at the best test epoch"
    )
    return (
        f"**Crime: not in pooled error.** C-Mixup has {ours:.3f} and minus ERM {interval_text(lead)} (preset paper); "
        f"the paper has {paper:.3f}. Choosing the epoch on the *test* states comes near it, with {best['cmixup']:.3f}, "
        f"and does so for ERM as well ({best['erm']:.3f}). We do not know that this was done."
    )


@sentence(FINDINGS)
def row_order(e: Evidence) -> str:
    """What keeping one order of the rows does."""
    erm = {d: changed(e, d, "erm", ONE_ORDER) for d in DOMAINS}
    lead = {d: e.gain("ablation_ood", d, "paper", "cmixup", options=ONE_ORDER) for d in DOMAINS}
    require(all(map(is_higher, erm.values())), "one order of the rows costs ERM")
    require(is_lower(lead["crime"]) and not is_lower(lead["skillcraft"]), "it makes C-Mixup's lead on Crime alone")
    return (
        "**The order of the rows alone makes C-Mixup's lead on Crime.** In the authors' code one order serves all "
        f"epochs. With that alone changed of preset paper ERM gets worse on both (by {interval_text(erm['crime'])} on "
        f"Crime), and C-Mixup beats it on Crime ({interval_text(lead['crime'])}) and not on SkillCraft "
        f"({interval_text(lead['skillcraft'])})."
    )


@sentence(FINDINGS)
def domain_methods(e: Evidence) -> str:
    """How many methods beat ERM on new domains, by preset."""

    def gains(*presets: str) -> list[Interval]:
        return [e.gain("table3", d, p, m) for d, p, m in itertools.product(DOMAINS, presets, OTHERS)]

    shuffled, kept = gains("paper", "tuned", "default", "tuned_default"), gains("released")
    require(n_lower(shuffled) == 0 and n_lower(kept) >= 2, "methods beat ERM where one order serves all epochs, alone")
    return (
        f"**Where rows are shuffled every epoch no method of Table 3 beats ERM in pooled error**: {n_lower(shuffled)} "
        f"of {len(shuffled)} intervals lie below 0 (ten methods on Crime and SkillCraft, presets paper, tuned, default "
        f"and tuned_default). Under preset released, where one order serves all epochs, {n_lower(kept)} of {len(kept)} "
        "do."
    )


@sentence(FINDINGS)
def authors_domains(e: Evidence) -> str:
    """The authors' code on Crime and SkillCraft."""
    cells = {"Crime (bandwidth 4)": ("crime", 4.0), "SkillCraft (bandwidth 5e-4)": ("skillcraft", 0.0005),
             "SkillCraft (bandwidth 1)": ("skillcraft", 1.0)}  # fmt: skip
    samples = {title: e.authors(d, "cmixup", bandwidth=width) for title, (d, width) in cells.items()}
    paper = {title: e.paper("table3", d, "cmixup").mean for title, (d, _) in cells.items()}
    require(
        all(sample.mean > paper[title] for title, sample in samples.items()), "the authors' code stays above the paper"
    )
    words = joined_words(
        [f"{sample.mean:.3f} on {title}, published {paper[title]:.3f}" for title, sample in samples.items()]
    )
    return f"The authors' code, run by us on ten seeds, does not reach the published C-Mixup either: {words}."
