"""Electricity."""

from datasets.common.fetch import raw_files
from datasets.common.windows import WINDOW, SeriesDataset


class Electricity(SeriesDataset):
    """Hourly electricity use of 321 clients, 2012 to 2014.

    Origin: UCI Machine Learning Repository, dataset 321, cleaned and summed to hours in
    laiguokun/multivariate-time-series-data (Lai et al. 2018).
    y: the 321 clients' use 24 hours ahead, in kWh, each divided by its largest value. x: the same 321 series over 168
    hours; rows t - 191 to t - 24 predict row t.
    Shapes: x (N, 168, 321), y (N, 321); 26304 hours, split 15591 / 5261 / 5261 in time order, the same for every run
    seed; windows of val and test reach back into the split before. No domains.
    Licence: CC BY 4.0 (UCI). Citation: Trindade, "ElectricityLoadDiagrams20112014", UCI, 2015; Lai, Chang, Yang and
    Liu, "Modeling Long- and Short-Term Temporal Patterns with Deep Neural Networks", SIGIR 2018.
    """

    name = "electricity"
    files = raw_files("electricity")
    unit = "kWh / its largest value"
    rows = 26304
    series = 321
    x_shape = (168, 321)
    y_width = 321
    split_sizes = (15591, 5261, 5261)

    def __init__(self, window: int = WINDOW, horizon: int = 24, scaling: str = "all", synthetic: bool = False):
        super().__init__(window, horizon, scaling, synthetic)
