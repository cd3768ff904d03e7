"""Writes the data of docs/own_data.md, `python -m docs.own_data my_data`, and draws its pictures.

The pixels, rows and rates are real: scikit-learn's digits and diabetes, and the electricity use of 203 clients.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.dates import DateFormatter
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_diabetes, load_digits

from cmixup.files import IMAGES_FORMAT, SERIES_FORMAT
from cmixup.saved_run import load_run
from datasets.common.fetch import FetchError
from datasets.electricity_fragment import ElectricityFragment
from scripts.report.rendering import to_png

ENDINGS = ("png", "jpg", "tiff", "webp")
DAY, WEEK = 24, 168  # rows
FIGURES = Path(__file__).parents[1] / "results" / "figures"


def write_table(folder: Path) -> None:
    """Write patients, of whom the disease's progression after a year is the label: diabetes.csv, and new.csv."""
    frame = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
    frame.insert(0, "patient", [f"p{k:03d}" for k in range(len(frame))])
    frame[:-42].to_csv(folder / "diabetes.csv", index=False)
    frame[-42:].to_csv(folder / "new.csv", index=False)


def write_images(folder: Path) -> None:
    """Write turned digits, the angle is the label: digits/ with digits.csv, and new_digits/ with new_digits.csv."""
    rng, digits = np.random.default_rng(0), load_digits().images
    for name, numbers in (("digits", range(1000)), ("new_digits", range(1000, 1100))):
        (folder / name).mkdir(exist_ok=True)
        rows = []
        for k in numbers:
            angle = round(rng.uniform(-60, 60), 1)
            digit = Image.fromarray((15 * digits[k]).astype(np.uint8)).resize((48, 48), Image.Resampling.BICUBIC)
            digit.rotate(angle).convert("RGB").save(folder / name / f"{k:04d}.{ENDINGS[k % 4]}")
            rows.append((f"{k:04d}", angle))
        pd.DataFrame(rows, columns=["file", "angle"]).to_csv(folder / f"{name}.csv", index=False)


def write_series(folder: Path) -> None:
    """Write the hourly use of 203 clients together: load.csv, and new_load.csv, which ends with the day to forecast."""
    ((_, path),) = ElectricityFragment().fetch()
    clients = pd.read_csv(path, index_col=0)
    times, load = pd.to_datetime(clients.index), clients.sum(axis=1).to_numpy() / 1000
    rows = pd.DataFrame({"date": times.strftime("%d.%m.%Y %H:%M"), "load": [f"{value:.1f} MWh" for value in load],
                         "hour": times.hour, "workday": times.day_of_week < 5})  # fmt: skip
    rows[:-DAY].to_csv(folder / "load.csv", index=False)
    new = rows[-DAY - WEEK :].reset_index(drop=True)
    new.assign(load=new["load"].where(new.index < WEEK), truth=new["load"]).to_csv(folder / "new_load.csv", index=False)


def write_arrays(folder: Path) -> None:
    """Write the digits as numbers, the label is how much ink they have: ink.npz, and new_ink.npz."""
    x = load_digits().images / 16
    y = x.sum(axis=(1, 2))
    for name, rows in (("ink", slice(0, 1500)), ("new_ink", slice(1500, None))):
        np.savez(folder / f"{name}.npz", x=x[rows].reshape(-1, 64), y=y[rows])


def draw_images(run: str, folder: Path) -> Figure:
    """Return new digits as the network saw them, and predictions against labels, of a finished run."""
    labels = pd.read_csv(folder / "new_digits.csv", dtype={"file": str})
    made = load_run(run)
    predicted = made.predict(folder / "new_digits")
    predicted.index = [Path(path).stem for path in predicted.index]
    angle = labels.set_index("file")["angle"][predicted.index]
    seen = made.preprocessing.apply(folder / "new_digits").pictures(np.arange(12))
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.5, 1))
    for axes, image, name in zip(left.subplots(3, 4).ravel(), seen, predicted.index, strict=False):
        axes.imshow(image)
        axes.set_title(f"{angle[name]:.0f}°, predicted {predicted['angle'][name]:.0f}°", fontsize=7)
        axes.axis("off")
    axes = right.subplots()
    axes.plot(angle, predicted["angle"], ".")
    axes.axline((0, 0), slope=1, color="0.7", zorder=0)
    axes.set(xlabel="angle, degrees", ylabel="predicted, degrees", title="100 new digits")
    return figure


def draw_forecast(run: str, folder: Path) -> Figure:
    """Return the last days of new_load.csv: what a finished run forecasts, what came, and a naive forecast."""
    rows = pd.read_csv(folder / "new_load.csv")
    times, truth = pd.to_datetime(rows["date"], dayfirst=True), rows["truth"].str.removesuffix(" MWh").astype(float)
    forecast = load_run(run).predict(rows)["load"]
    figure = Figure(figsize=(9, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(times[-5 * DAY :], truth[-5 * DAY :], color="0.3", label="truth")
    axes.plot(times[-DAY:], truth[:DAY], ":", color="C1", label="the same hour a week before")
    axes.plot(forecast.index, forecast, color="C0", label="forecast")
    axes.axvline(times.iloc[-DAY - 1], color="0.7", lw=1)
    axes.set(ylabel="load, MWh", title="A day ahead, from the week before")
    axes.xaxis.set_major_formatter(DateFormatter("%a %d %b"))
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return figure


#: By the kind of a run, the picture that is drawn of it.
PICTURES = {IMAGES_FORMAT: ("own_images.png", draw_images), SERIES_FORMAT: ("own_forecast.png", draw_forecast)}


def main() -> None:
    """Write the data, or draw the picture of a run that is named, too."""
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        name, draw = PICTURES[load_run(sys.argv[2]).preprocessing.format]
        (FIGURES / name).write_bytes(to_png(draw(sys.argv[2], folder)))
        return
    folder.mkdir(parents=True, exist_ok=True)
    for write in (write_table, write_images, write_arrays, write_series):
        try:
            write(folder)
        except FetchError as error:
            print(f"the series is left out: {error}")  # noqa: T201


if __name__ == "__main__":
    main()
