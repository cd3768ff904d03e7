"""Labels in a file of one's own."""

from pathlib import Path

import numpy as np

from cmixup.errors import InputError, format_value, nearest
from cmixup.tables.columns import label_column
from datasets.common.damaged import naming
from datasets.common.table.reading import Format, column_named, read_table

LONGEST = 200  # characters of the names of columns in a message


def file_labels(path: Path, column: str) -> np.ndarray:
    """Return labels from a `.npy` array or one column of a table (`read_table`).

    Raises:
        InputError: no such file, another kind of file, no such column, or a value that is no number.
    """
    if not path.is_file():
        raise InputError(f"table: no such file {path}")
    if path.suffix == ".npy":
        with naming(path, "an array of numbers"):
            array = np.load(path, allow_pickle=False, mmap_mode="r")  # mapped: a header may promise any size
            if array.dtype.kind not in "biuf":
                raise InputError(f"labels {path} is not an array of numbers: its dtype is {array.dtype}")
            return np.array(array, dtype=np.float64)
    frame = read_table(path, Format())
    header = [str(name) for name in frame]
    column = column_named(column, header) if column else header[0] if len(header) == 1 else ""
    if column not in header:
        near = nearest(column, header)[:LONGEST] if column else f"; there are {', '.join(header)[:LONGEST]}"
        raise InputError(f"target must name a column of {path}, got {format_value(column)}{near}")
    numbers, _ = label_column(frame[column], str(path), decimal=frame.attrs.get("decimal", "."))
    if np.isnan(numbers).any():
        row = int(np.argmax(np.isnan(numbers))) + 1
        raise InputError(f"{path}, row {row}, column {format_value(column)} holds no value")
    return numbers
