"""Tables of the paper, from records: each experiment and preset with published runs; files, pages, missing cells."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from cmixup.metrics import with_everywhere
from scripts.config.compose import part_file
from scripts.driver.runs import LEARNED_NOTHING
from scripts.plan.selection import recorded_under, selected_methods, shared_options
from scripts.records import names
from scripts.records.csv_rows import read_csv
from scripts.records.experiment import RESULTS, Experiment, all_experiments, load_experiment, paper_rows, stands_for
from scripts.records.rescored import table_runs
from scripts.records.run_tables import FACTS, options_text
from scripts.report.rendering import writes
from scripts.report.result_table import ResultTable, make_block, table_page, to_table_csv


def make_table(
    experiment: Experiment, runs: pd.DataFrame, preset: str, methods: Sequence[str] | None = None,
    missing: Sequence[str] = (), *, more: Sequence[str] = (),
) -> ResultTable:  # fmt: skip
    """Return the table of one preset: a block for every dataset that has runs, which may be of any experiment.

    `methods` are its rows, all of the experiment by default, and `more` metrics that its CSV has beside the page's.
    """
    preset_runs = experiment_runs(experiment, runs, preset)
    present = [d for d in (*experiment.datasets, experiment.fallback) if d in set(preset_runs["dataset"])]
    paper, blocks = paper_rows(experiment), []
    for dataset in present:
        rows = selected_methods(experiment, dataset, methods or experiment.methods)
        notes = block_notes(experiment, preset_runs[preset_runs["dataset"] == dataset], dataset, rows)
        if dataset not in {r["dataset"] for r in paper}:
            known = {r["dataset"] for r in read_csv(RESULTS / "paper" / "results.csv")}
            elsewhere = names.dataset_title(dataset) in known
            notes.append("Not in the paper's table: our addition." if elsewhere else "Not in the paper: a stand-in.")
        metrics, compare = experiment.metrics_of.get(dataset, experiment.metrics), experiment.compare
        about = {"dataset": dataset, "metrics": metrics, "compare": stands_for(experiment, dataset, compare)}
        blocks.append(make_block(preset_runs, paper, methods=rows, notes=notes, more=more, **about))
    about = {"preset": preset, "about": experiment.about_preset.get(preset, "")}
    about |= {"epoch": "of the last epoch"} if shared_options(experiment).get("train.select") == "last" else {}
    return ResultTable(experiment.title, blocks, missing, experiment.notes, **about)


def block_notes(experiment: Experiment, runs: pd.DataFrame, dataset: str, methods: Sequence[str]) -> list[str]:
    """Return sentences on a dataset's runs: where methods mix, which learned nothing, which the paper trains."""
    titles = {m: names.method_title(m) for m in methods}
    layers = runs[runs["layer"] != ""].groupby("method")["layer"].unique()
    learned = runs.get(f"{FACTS}_{LEARNED_NOTHING}", pd.Series(index=runs.index))
    seeds = runs[learned.notna()].groupby("method")["seed"].unique()
    mixed = dict[str, list[str]]()
    for method in (m for m in titles if m in layers):
        mixed.setdefault(" and ".join(sorted(layers[method])), []).append(titles[method])
    failed = [f"{title} (seeds {', '.join(map(str, sorted(seeds[m])))})" for m, title in titles.items() if m in seeds]
    *fewer, (main_layer, _) = sorted(mixed.items(), key=lambda pair: len(pair[1])) or [("", [])]
    where = [f"{layer}: {', '.join(group)}" for layer, group in fewer] + [f"{'others: ' * bool(fewer)}{main_layer}"]
    notes = [f"Mixed at {'; '.join(where)}."] if mixed else []
    if failed:
        notes.append(f"By validation no better than the mean of the training labels: {', '.join(failed)}.")
    for theirs, ours in experiment.paper_trains.get(dataset, {}).items():
        notes.append(f"The paper's {names.method_title(theirs)} is {names.method_title(ours)} on this dataset.")
    return notes


def experiment_runs(experiment: Experiment, runs: pd.DataFrame, preset: str) -> pd.DataFrame:
    """Return the runs of one preset that an experiment shows."""
    mine = runs[runs["preset"] == preset]
    under = [recorded_under(experiment, *pair) for pair in zip(mine["method"], mine["dataset"], strict=True)]
    return mine[mine["experiment"] == under]


def list_tables(runs: pd.DataFrame) -> Iterator[tuple[Experiment, str, ResultTable]]:
    """Yield every table of the paper, or of the same with options changed, that has records among all published ones.

    Its CSV has the metrics that every run has beside the experiment's.
    """
    for experiment in all_experiments():
        changed = experiment.overrides and not experiment.figure
        if not (experiment.paper_table or changed) or experiment.points:
            continue
        merged = with_batch_row(experiment)
        presets = runs.loc[runs["experiment"] == experiment.name, "preset"].unique()
        for preset in sorted(presets, key=lambda p: ({"paper": 0, "released": 1}.get(p, 2), p)):
            preset_runs = experiment_runs(merged, standard_runs(runs, experiment), preset)
            missing = missing_lines(experiment, preset_runs, preset)
            yield experiment, preset, make_table(merged, preset_runs, preset, missing=missing, more=with_everywhere(()))


#: Tables of the appendix whose new row, C-Mixup-batch, stands on the page of the table that has their other row.
BATCH_ROW = {"table1": "table_batch_id", "table3": "table_batch_ood"}


def with_batch_row(experiment: Experiment) -> Experiment:
    """Return the experiment with the row and the paper's numbers of its table in `BATCH_ROW`, if it has one."""
    if not (name := BATCH_ROW.get(experiment.name)):
        return experiment
    batch, (*before, last) = load_experiment(name), experiment.methods
    runs, printed = {"cmixup_batch": dict.fromkeys(batch.datasets, name)}, [experiment.paper_table, batch.paper_table]
    return replace(experiment, methods=[*before, *runs, last], runs_from=runs, paper_table=" ".join(printed))


def standard_runs(runs: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """Return the runs that follow their preset: nothing was changed but what all runs of `experiment` do."""
    return runs[runs["options"].isin(["", options_text(shared_options(experiment))])]


def missing_lines(experiment: Experiment, runs: pd.DataFrame, preset: str = "paper") -> list[str]:
    """Return a line on every cell without published runs, or one on all of a dataset's: why, and what a run costs."""
    there = set(zip(runs["dataset"], runs["method"], strict=True))
    lines = []
    for dataset in experiment.datasets:
        cells = selected_methods(experiment, dataset, experiment.methods)
        if missing := [names.method_title(method) for method in cells if (dataset, method) not in there]:
            untrained = "" if len(missing) == len(cells) else f", {', '.join(missing)}"
            about = part_file("dataset", dataset)
            values = about["presets"].get(preset, about["presets"]["paper"])
            minutes = values.get("cpu_minutes", about.get("cpu_minutes"))
            cost = f"; a run without mixing takes about {minutes} minutes on a CPU core" * isinstance(minutes, int)
            lines.append(f"{names.dataset_title(dataset)}{untrained}: {about.get('absent', 'not run yet')}{cost}")
    return lines


@writes
def table_files() -> dict[str, str]:
    """Return every table as CSV, and a page for each table of the paper, with the presets that it prints or has.

    A page has the datasets of the paper's table alone.
    """
    texts, pages = dict[str, str](), dict[str, tuple[Experiment, list[ResultTable]]]()
    for experiment, preset, table in list_tables(table_runs()):
        texts[f"tables/{experiment.name}_{preset}.csv"] = to_table_csv(table)
        page_experiment, tables = pages.setdefault(experiment.paper_table, (experiment, []))
        elsewhere = page_experiment is not experiment or experiment.name in BATCH_ROW.values()
        if elsewhere or not experiment.paper_table or preset not in ("paper", "released", "cpu"):
            continue
        # Smaller networks stand beside larger ones that have no C-Mixup yet, not instead of it.
        with_cmixup = {b.dataset for one in tables for b in one.blocks if preset == "cpu" and "cmixup" in b.runs}
        printed = (b for b in table.blocks if any(s.paper for scores in b.cells.values() for s in scores.values()))
        blocks = [b for b in printed if b.dataset not in with_cmixup and any("cmixup" in method for method in b.runs)]
        tables += [replace(table, blocks=blocks)] if blocks else []
    return texts | {f"tables/{e.name}.md": _published_page(e, tables) for e, tables in pages.values() if tables}


def _published_page(experiment: Experiment, tables: Sequence[ResultTable]) -> str:
    """Return the page of a table of the paper, which names the datasets that are in none of its sections."""
    titles = {names.dataset_title(block.dataset) for table in tables for block in table.blocks}
    printed = dict.fromkeys(names.dataset_title(row["dataset"]) for row in paper_rows(experiment))
    missing = [title for title in printed if title not in titles]
    absent = f"Not here: {', '.join(missing)} ([why](../../docs/data.md#what-is-missing)). " if missing else ""
    target, files = f"reproduce-{experiment.name.replace('_', '-')}", f"`{experiment.name}_*.csv`"
    command = f"`make {target} PRESET={tables[-1].preset}` trains one."
    end = f"{absent}All presets, scores and differences are in {files}; {command}"
    return f"{table_page(replace(tables[0], missing=[]), *tables[1:], linked=True)}\n{end}\n"
