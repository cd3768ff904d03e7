"""How tables print datasets, methods and metrics.

The config of a dataset or method holds its `title`, spelt as the paper prints it.
"""

import functools
from collections.abc import Iterable

from cmixup.errors import InputError
from cmixup.metrics import METRICS, parse_score
from scripts.config.compose import option_names, part_file


@functools.cache
def _part_title(group: str, name: str) -> str:
    # A record may be of a part that is not in this version: it is shown by its own name.
    return str(part_file(group, name).get("title", name)) if name in option_names(group) else name


def dataset_title(name: str) -> str:
    """Return how tables print a dataset; one without a config goes by its name."""
    return _part_title("dataset", name)


def method_title(name: str) -> str:
    """Return how tables print a method; one without a config goes by its name."""
    return _part_title("method", name)


def metric_title(name: str) -> str:
    """Return how tables print a score, such as "worst_rmse"; one that is of no metric goes by its name."""
    try:
        over, metric, predictor = parse_score(name)
    except InputError:
        return name
    title = {"": "{}", "worst_": "worst {}", "mean_": "mean {} over domains"}[over].format(METRICS[metric].title)
    return f"{title}, {predictor.replace('_', ' ')}" if predictor else title


def spelling(group: str, title: str, among: Iterable[str] = ()) -> str:
    """Return our spelling of the one dataset, method or metric (`group`) that the paper prints as `title`.

    Blanks around "+" do not count. Where several have this title ("C-Mixup" of tables and of tasks) it is that of
    `among`.
    """
    known = {name: metric.title for name, metric in METRICS.items()} if group == "metric" else {
        name: _part_title(group, name) for name in option_names(group)}  # fmt: skip
    titled = [name for name, printed in known.items() if printed.replace(" + ", "+") == title.replace(" + ", "+")]
    names = [name for name in titled if name in among] or titled
    if len(names) != 1:
        meaning = f"several: {', '.join(names)}" if names else "none"
        raise InputError(f"{title!r} of the paper must be the title of one {group}, but it is that of {meaning}")
    return names[0]


def in_order(present: Iterable[str], order: Iterable[str]) -> list[str]:
    """Return the names in `present` in the given order; names that the order lacks follow."""
    wanted, there = list(order), list(dict.fromkeys(present))
    return [name for name in wanted if name in there] + [name for name in there if name not in wanted]
