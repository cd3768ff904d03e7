"""Make a workspace of wandb for the runs of a project: curves, test error over the swept option, and predictions.

Runs get there online (`WANDB_MODE=online`), or later by `wandb sync`. Panels average the seeds of each method and value
of the first swept option. It needs `pip install '.[dashboard]'` and `wandb login`; each call adds a workspace.

Example: python -m scripts.dashboard entity=my-team project=cmixup over=method.bandwidth,train.lr
"""

from collections.abc import Sequence
from typing import Any

from cmixup.errors import InputError, check_choice
from cmixup.metrics import METRICS
from scripts.config.arguments import Args, parse_args
from scripts.driver.cli import user_errors

OVER = "method.bandwidth"
KEYS = {
    "entity": "a user or team of wandb",
    "project": "its project; default cmixup, as of runs without WANDB_PROJECT",
    "over": f"swept options between commas; default {OVER}",
    "metric": "whose errors are shown; default rmse",
    "dataset": "whose runs are shown; default all",
}


def make_workspace(args: Args) -> Any:
    """Return a `wandb_workspaces.workspaces.Workspace` for what `KEYS` name; nothing has sent it yet.

    A line is the mean of a method and a value of the first of the options `over`, which may be `dataset`, `model`,
    `method` or `preset`, too. Each option has a panel of the test error, and an axis of the parallel coordinates.

    Raises:
        InputError: no entity, an unknown metric, or wandb-workspaces is not installed.
    """
    if not (entity := args.get("entity", "")):
        raise InputError("entity must be given: a user or team of wandb")
    metric = check_choice("metric", args.get("metric", "rmse"), tuple(METRICS))
    dataset, over = args.get("dataset", ""), [name.strip() for name in args.get("over", OVER).split(",")]
    try:
        from wandb_workspaces import expr, workspaces
        from wandb_workspaces.reports import v2 as panels
    except ImportError:
        raise InputError("the dashboard needs wandb-workspaces: pip install '.[dashboard]'") from None
    paths = [f"{name}.name" if name in ("dataset", "model", "method") else name for name in over]
    axes: list[Any] = [panels.Config(path) for path in paths]
    val, test = (panels.SummaryMetric(f"{split}/{metric}") for split in ("val", "test"))
    columns = [panels.ParallelCoordinatesPlotColumn(axis) for axis in [*axes, val, test]]
    section_panels: dict[str, list[Any]] = {
        "curves": [panels.LinePlot(title=name, x="epoch", y=[name]) for name in (val.name, "train/loss")],
        "sweep": [
            *(panels.ScatterPlot(title=f"{test.name} over {o}", x=x, y=test) for o, x in zip(over, axes, strict=True)),
            panels.ParallelCoordinatesPlot(title=f"options and {metric}", columns=columns),
        ],
        "predictions": [panels.WeavePanelSummaryTable(table_name="test/predictions")],
    }
    sections = []
    for name, parts in section_panels.items():
        layout = workspaces.SectionLayoutSettings(columns=min(len(parts), 2), rows=(len(parts) + 1) // 2)
        sections.append(workspaces.Section(name, parts, is_open=True, layout_settings=layout))
    runs = workspaces.RunsetSettings(
        filters=expr.And(expr.Tags().isin([dataset])) if dataset else "",  # of a run: its dataset is a tag
        groupby=[expr.Config(path) for path in dict.fromkeys(["method.name", *paths[:1]])],
    )
    title, limit = " ".join(filter(None, [dataset, metric, "over", *over])), workspaces.WorkspaceSettings(max_runs=100)
    options: dict[str, Any] = {"name": title, "sections": sections, "settings": limit, "runset_settings": runs}
    return workspaces.Workspace(entity=entity, project=args.get("project", "cmixup"), **options)


def main(argv: Sequence[str] | None = None) -> None:
    """Send the workspace, and print its address."""
    with user_errors():
        workspace = make_workspace(parse_args(argv, KEYS, __doc__))
        try:
            workspace.save()
        except Exception as error:  # wandb raises errors of many kinds
            raise InputError(f"wandb: {' '.join(str(error).split())[:200]} (entity {workspace.entity!r})") from None
        print(workspace.url)


if __name__ == "__main__":
    main()
