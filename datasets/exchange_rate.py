"""Exchange-Rate."""

from datasets.common.fetch import raw_files
from datasets.common.windows import SeriesDataset


class ExchangeRate(SeriesDataset):
    """Daily exchange rates of eight currencies, 1990 to 2016.

    Origin: laiguokun/multivariate-time-series-data (Lai et al. 2018); Australia, Britain, Canada, Switzerland, China,
    Japan, New Zealand and Singapore.
    y: the eight rates 12 days ahead, each divided by its largest value (0.006254 to 2.109 before). x: the same eight
    rates over 168 days; rows t - 179 to t - 12 predict row t.
    Shapes: x (N, 168, 8), y (N, 8); 7588 days, split 4373 / 1518 / 1518 in time order, the same for every run seed;
    windows of val and test reach back into the split before. No domains.
    Licence: none stated. Citation: Lai, Chang, Yang and Liu, "Modeling Long- and Short-Term Temporal Patterns with Deep
    Neural Networks", SIGIR 2018.
    """

    name = "exchange_rate"
    files = raw_files("exchange_rate")
    unit = "exchange rate / its largest value"
    rows = 7588
    series = 8
    x_shape = (168, 8)
    y_width = 8
    split_sizes = (4373, 1518, 1518)
