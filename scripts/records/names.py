"""How tables print datasets, methods and metrics.

The config of a dataset or method holds its `title`, spelt as the paper prints it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from cmixup.errors import InputError
from scripts.driver.compose import names as options
from scripts.driver.compose import part_file

METRICS = {
    "rmse": "RMSE", "mape": "MAPE(%)", "r": "R", "mse": "MSE", "worst_rmse": "worst RMSE", "worst_r": "worst R",
    "mean_rmse": "mean RMSE over domains", "mean_r": "mean R over domains",
    "mse_ci95": "95 % interval over tasks ±", "mse_20_steps": "MSE, 20 steps",
    "mse_ci95_20_steps": "95 % interval over tasks ±, 20 steps",
}  # fmt: skip


@functools.cache
def _title(group: str, name: str) -> str:
    # A record may be of a part that is not in this version: it is shown by its own name.
    return str(part_file(group, name).get("title", name)) if name in options(group) else name


def dataset_title(name: str) -> str:
    """Return how tables print a dataset; one without a config goes by its name."""
    return _title("dataset", name)


def method_title(name: str) -> str:
    """Return how tables print a method; one without a config goes by its name."""
    return _title("method", name)


def metric_title(name: str) -> str:
    """Return how tables print a metric; one that is not listed goes by its name."""
    return METRICS.get(name, name)


def metric_spelling(title: str) -> str:
    """Return our spelling of a metric that the paper prints as `title`.

    Raises:
        InputError: no metric has this title.
    """
    return _the_one("metric", title, [name for name, shown in METRICS.items() if shown == title])


def spelling(group: str, title: str, among: Iterable[str] = ()) -> str:
    """Return our spelling of a dataset or method that the paper prints as `title`; blanks around "+" do not count.

    Args:
        group: "dataset" or "method".
        title: as the paper prints it.
        among: names that are preferred where several have this title ("C-Mixup" of tables and of tasks).

    Raises:
        InputError: no config has this title, or several have it and `among` does not say which is meant.
    """
    wanted = title.replace(" + ", "+")
    found = [name for name in options(group) if _title(group, name).replace(" + ", "+") == wanted]
    return _the_one(group, title, [name for name in found if name in among] or found)


def _the_one(group: str, title: str, found: list[str]) -> str:
    if len(found) != 1:
        which = f"several: {', '.join(found)}" if found else "none"
        raise InputError(f"{title!r} of the paper must be the title of one {group}, but it is that of {which}")
    return found[0]


def in_order(present: Iterable[str], order: Iterable[str]) -> list[str]:
    """Return the names in `present` in the given order; what the order does not know follows and is not lost."""
    wanted, there = list(order), list(dict.fromkeys(present))
    return [name for name in wanted if name in there] + [name for name in there if name not in wanted]
