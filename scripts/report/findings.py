"""The tables of results/findings.md: differences with their intervals and a verdict, a row each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scripts.records import names
from scripts.report.evidence import Evidence, is_higher, is_lower, minus, published_evidence
from scripts.report.register import fills
from scripts.report.result_table import markdown_rows
from scripts.report.sentences_domains import DOMAINS, ONE_ORDER, changed
from scripts.report.sentences_tables import FINDINGS, bandwidth_gains
from scripts.stats.intervals import Interval

Row = tuple[str, Interval, int]  # what is subtracted from what, the difference, decimals
EVERY_PRESET = ("paper", "released", "default", "tuned", "tuned_default")
DIRECTED = ("irm", "ib_irm", "vrex", "coral", "drnn", "group_dro", "fish")


def verdict(difference: Interval) -> str:
    """Return on which side of 0 an interval lies."""
    return "lower" if is_lower(difference) else "higher" if is_higher(difference) else "inconclusive"


def difference_lines(rows: Iterable[Row]) -> str:
    """Return the Markdown table of some differences."""
    body = [
        [label, str(d.n), f"{d.mean:+.{places}f}", f"[{d.low:+.{places}f}, {d.high:+.{places}f}]", verdict(d)]
        for label, d, places in rows
    ]
    return "\n".join(markdown_rows(("difference", "n", "mean", "95 % interval", "verdict"), body))


@fills
def finding_parts() -> dict[str, dict[str, str]]:
    """Return every table of the page."""
    e = published_evidence()
    tables = {"effects_table1": table1_rows, "effects_domains": domain_rows, "effects_rcf_mnist": rcf_rows,
              "effects_table4": mixing_rows, "effects_noise": noise_rows,
              "effects_invariance": invariance_rows}  # fmt: skip
    return {FINDINGS: {name: difference_lines(rows(e)) for name, rows in tables.items()}}


def table1_rows(e: Evidence) -> Iterator[Row]:
    """Yield C-Mixup minus ERM by dataset and preset, in the authors' code, and RC-Mixup minus ERM."""
    for dataset in ("airfoil", "no2"):
        for preset in EVERY_PRESET:
            about = f"C-Mixup minus ERM: {names.dataset_title(dataset)}, preset {preset}"
            yield about, e.gain("table1", dataset, preset, "cmixup"), 3
    yield (
        "C-Mixup minus ERM: Exchange-Rate, preset released",
        e.gain("table1", "exchange_rate", "released", "cmixup"),
        4,
    )
    for dataset, places in (("airfoil", 3), ("exchange_rate", 4)):
        about = f"the same in the authors' code: {names.dataset_title(dataset)}"
        yield about, minus(e.authors(dataset, "cmixup"), e.authors(dataset, "erm")), places
    for dataset in ("airfoil", "no2"):
        about = f"RC-Mixup minus ERM, both tuned: {names.dataset_title(dataset)}"
        yield about, e.gain("table1", dataset, "tuned", "rc_mixup"), 3


def domain_rows(e: Evidence) -> Iterator[Row]:
    """Yield what bandwidth, order of the rows, scaling and presets change on Crime and SkillCraft."""
    for dataset in DOMAINS:
        title = names.dataset_title(dataset)
        for preset in EVERY_PRESET:
            yield f"C-Mixup minus ERM: {title}, preset {preset}", e.gain("table3", dataset, preset, "cmixup"), 3
        worst = e.gain("table3", dataset, "paper", "cmixup", metric="worst_rmse")
        yield f"C-Mixup minus ERM: {title}, preset paper, worst domain", worst, 3
        one = e.gain("ablation_ood", dataset, "paper", "cmixup", options=ONE_ORDER)
        yield f"C-Mixup minus ERM: {title}, preset paper, one order of rows", one, 3
    for width in (1.0, 3.0, 6.0):
        yield f"C-Mixup minus ERM: SkillCraft, bandwidth {width:g}", bandwidth_gains(e)["skillcraft", width], 3
    wide = changed(e, "crime", "cmixup", {"method.bandwidth": 4.0}, base="erm")
    yield "C-Mixup minus ERM: Crime, bandwidth 4", wide, 3
    for width in (0.003, 0.01, 0.03):
        yield (
            f"C-Mixup: Crime, bandwidth {width:g} minus 1",
            changed(e, "crime", "cmixup", {"method.bandwidth": width}),
            3,
        )
    for about, options in (
        ("rows never reshuffled", ONE_ORDER),
        ("scaled on all rows", {"dataset.scaling": "all"}),
        ("features standardised", {"dataset.scaling": "standard"}),
    ):
        for dataset in DOMAINS:
            yield f"ERM: {names.dataset_title(dataset)}, {about}", changed(e, dataset, "erm", options), 3
    for dataset in DOMAINS:
        about = f"C-Mixup: {names.dataset_title(dataset)}, one lambda a batch"
        yield about, changed(e, dataset, "cmixup", {"method.lam_per": "batch"}), 3


def rcf_rows(e: Evidence) -> Iterator[Row]:
    """Yield differences on RCF-MNIST: by the chosen epoch, the last one, and with balanced batches."""
    last = {"train.select": "last"}
    balanced = {**last, "train.domains_per_batch": 2}
    rules = (("epoch chosen on validation", "table3", None), ("last epoch", "table3_last_epoch", last),
             ("last epoch, balanced batches", "table3_balanced", balanced))  # fmt: skip
    for method in ("cmixup_batch", "cmixup"):
        for about, experiment, options in rules:
            d = e.gain(experiment, "rcf_mnist", "cpu", method, options=options)
            yield f"{names.method_title(method)} minus ERM, {about}", d, 3
    erm = e.runs("table3_balanced", "rcf_mnist", "cpu", "erm", balanced)
    yield (
        "ERM, balanced batches minus others",
        minus(erm, e.runs("table3_last_epoch", "rcf_mnist", "cpu", "erm", last)),
        3,
    )
    for method in DIRECTED:
        d = minus(e.runs("table3_last_epoch", "rcf_mnist", "cpu", method, last), erm)
        yield f"{names.method_title(method)} minus ERM, last epoch, balanced batches", d, 3


def mixing_rows(e: Evidence) -> Iterator[Row]:
    """Yield what C-Mixup's partners change of other mixings."""
    mixup = e.runs("table3", "rcf_mnist", "cpu", "mixup")
    yield (
        "mixup, partners of C-Mixup minus uniform",
        minus(e.runs("table4", "rcf_mnist", "cpu", "mixup_cmixup"), mixup),
        3,
    )
    for method in ("cutmix", "puzzlemix", "automix"):
        d = e.gain("table4", "rcf_mnist", "cpu", f"{method}_cmixup", method)
        yield f"{names.method_title(method)}, the same", d, 3
    yield "C-Mixup-batch minus mixup of inputs", minus(e.runs("table3", "rcf_mnist", "cpu", "cmixup_batch"), mixup), 3


def noise_rows(e: Evidence) -> Iterator[Row]:
    """Yield C-Mixup minus ERM with noise on the training labels."""
    for dataset, preset, places in (("airfoil", "paper", 3), ("no2", "paper", 3), ("exchange_rate", "cpu", 4)):
        d = e.gain("table_noise", dataset, preset, "cmixup", options={"dataset.label_noise": 0.3})
        yield f"C-Mixup minus ERM: {names.dataset_title(dataset)}", d, places


def invariance_rows(e: Evidence) -> Iterator[Row]:
    """Yield the divergence of representations between domains, minus ERM's."""
    for dataset in DOMAINS:
        samples = {
            method: e.rows("invariance.csv", "value", preset="paper", split="train", domains="all", dataset=dataset,
                           method=method)
            for method in ("erm", "mixup", "manifold_mixup", "cmixup")
        }  # fmt: skip
        for method in ("mixup", "manifold_mixup", "cmixup"):
            about = f"{names.method_title(method)}'s divergence minus ERM's, {names.dataset_title(dataset)}"
            yield about, minus(samples[method], samples["erm"]), 2
