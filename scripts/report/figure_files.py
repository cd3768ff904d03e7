"""Figures as the PNG files of results/: they are written, and compared with what the records draw."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.records.experiment import RESULTS
from scripts.report.figure_checks import faults_of
from scripts.report.figures import to_png

VISIBLE = 0.1  # of a pixel's colour, which is in [0, 1]


def write_figures(figures: Mapping[str, Figure], results: Path = RESULTS) -> list[Path]:
    """Write figures as PNG files, given by their paths below `results`; returns the files.

    Only published pictures are refused for a fault: one of a user's own data is drawn all the same.

    Raises:
        InputError: `results` is in the project's own, and a figure has a fault; nothing is written then.
    """
    pictures = {results / name: to_png(figure) for name, figure in figures.items()}
    if results.resolve().is_relative_to(RESULTS.resolve()) and (found := faults_of(figures)):
        raise InputError(f"not published: {'; '.join(found)}")
    for path, picture in pictures.items():
        write_atomically(path, picture)
    return list(pictures)


def stale_figures(figures: Mapping[str, Figure], results: Path = RESULTS) -> list[str]:
    """Return which figures have no file below `results`, or one that shows something else.

    Pixels are compared, not bytes: another machine may pack the same picture otherwise, or round a shade.
    """
    return [f"{results.name}/{name}" for name, figure in figures.items() if not _shows(results / name, figure)]


def _shows(path: Path, figure: Figure) -> bool:
    if not path.is_file():
        return False
    there, drawn = imread(path), imread(io.BytesIO(to_png(figure)))
    return there.shape == drawn.shape and bool(np.abs(there - drawn).max() < VISIBLE)
