"""A fragment of Electricity, for where the whole file is out of reach."""

from collections.abc import Mapping
from typing import Any, ClassVar

from datasets.common.fetch import raw_files
from datasets.electricity import Electricity


class ElectricityFragment(Electricity):
    """The first 1000 hours of 203 of Electricity's 321 clients.

    Origin: a copy in suncy998/MELLM-DW-Suppression-Evaluation of the hourly series that Electricity also uses. Not in
    the paper: 2 % of its data and another task, so results on it never enter the paper's column.
    y: the 203 clients' use 24 hours ahead, in kWh, each divided by its largest value. x: the same 203 series over 168
    hours; rows t - 191 to t - 24 predict row t.
    Shapes: x (N, 168, 203), y (N, 203); 1000 hours, split 409 / 200 / 200 in time order, the same for every run seed;
    windows of val and test reach back into the split before. No domains.
    Licence: CC BY 4.0 (UCI). Citation: Trindade, "ElectricityLoadDiagrams20112014", UCI, 2015.
    """

    name = "electricity_fragment"
    files = raw_files("electricity_fragment")
    rows = 1000
    series = 203
    x_shape = (168, 203)
    y_width = 203
    split_sizes = (409, 200, 200)
    layout: ClassVar[Mapping[str, Any]] = {"skiprows": 1, "usecols": range(1, 204)}  # without the dates

    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), "the first 1000 hours of 203 of 321 clients: not the paper's Electricity")
