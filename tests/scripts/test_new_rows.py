"""New rows for a run in every usual form mean the same numbers."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup import InputError, load_run
from cmixup.inputs.arrays import ArrayPreprocessing
from cmixup.tables.series import SeriesPreprocessing
from cmixup.tables.written import ISO
from datasets.no2 import NO2
from datasets.series import Series
from scripts.driver.job import Job


def test_rows_of_a_table_in_any_form_are_those_of_the_frame(no2: tuple[Job, Path]) -> None:
    run = load_run(no2[1] / "seed=3")
    frame = pd.DataFrame(np.random.default_rng(0).normal(3, 1, (4, 7)), columns=list(NO2.columns))
    expected, x = run.predict(frame).to_numpy(), run.preprocessing.apply(frame)
    rows = frame.to_numpy(copy=True)
    for given in (
        *(frame[frame.columns[::-1]], frame.to_dict("list"), frame.to_dict("records"), rows, rows.tolist()),
        *(tuple(map(tuple, rows)), torch.from_numpy(rows).requires_grad_(), frame.astype(object)),
    ):
        assert np.array_equal(run.predict(given).to_numpy(), expected)
    series = {name: SimpleNamespace(to_list=frame[name].tolist) for name in frame}
    polars = type("Frame", (dict,), {"columns": [*series][::-1]})(series)  # which has columns by name, as polars does
    assert np.array_equal(run.predict(polars).to_numpy(), expected)
    for given in (frame.iloc[1], frame.iloc[1].to_dict()):
        assert np.array_equal(run.predict(given).to_numpy(), expected[1:2])
    assert np.array_equal(run.predict(x, scaled=True), expected)
    for wrong in (rows[:, :5], rows[0], [1, "a"], 3, None):
        with pytest.raises(InputError, match=r"rows must be a data frame.*7 columns.*scaled=True takes inputs as"):
            run.predict(wrong)


def test_rows_of_arrays_in_any_form_are_those_of_the_array() -> None:
    made = ArrayPreprocessing(("y",), ("",), (2,), (1000.0, 5.0), (50.0, 2.0))
    rows = np.array([[1000.0, 9.0], [1100.0, 5.0]])
    whole = rows.astype(np.int32)
    for given in (rows.tolist(), tuple(rows), {"x": rows}, pd.DataFrame(rows), torch.from_numpy(rows), whole, rows):
        x = made.apply(made.as_given(given))[torch.arange(2)]
        assert x.tolist() == [[0.0, 2.0], [2.0, 0.0]]
    for wrong in ([[1, 2], [3]], [["a", "b"]], "x", {"z": 1}, None):
        with pytest.raises(InputError, match=r"rows must be an array or lists of numbers \(N, 2\)"):
            made.as_given(wrong)


def test_series_take_their_own_predictions_with_times_in_the_index(tmp_path: Path) -> None:
    times = pd.date_range("2024", periods=60, freq="D")
    rows = pd.DataFrame({"time": times, "site": "a", "load": np.sin(np.arange(60))})
    rows = pd.concat([rows, rows.assign(site="b", load=rows["load"] + 1)])
    rows.to_csv(tmp_path / "s.csv", index=False)
    data = Series(str(tmp_path / "s.csv"), id="site", window=5, horizon=2, steps="all").load(0)
    made = SeriesPreprocessing.from_json(data.extras["preprocessing.json"])
    expected = made.apply(rows)
    forecast = made.predictions(rows, np.zeros((2, 2)))
    assert forecast.index.names == ["site", "time"]
    assert np.array_equal(made.apply(rows.set_index(["site", "time"])), expected)
    assert np.array_equal(made.apply(rows.set_index("time")), expected)
    one = rows[rows["site"] == "a"].drop(columns="site")
    alone = SeriesPreprocessing(("load",), ("",), "time", ISO, "", ("load",), ("",), 0, 5, 1, "last", "none", "D")
    alone = alone.scaled_by(np.zeros(1), np.ones(1))
    assert np.array_equal(alone.apply(one.set_index("time").rename_axis(None)), alone.apply(one))
    with pytest.raises(InputError, match="rows must be a data frame, a dict of columns or a list of dicts; scaled"):
        made.as_given(rows["load"].tolist())
    with pytest.raises(InputError, match="rows must be a data frame, a dict of columns or a list of dicts; scaled"):
        made.as_given(type("Foreign", (), {"columns": ["load"]})())
