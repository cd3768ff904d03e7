"""How new rows become a run's inputs, and its outputs predictions with names, kept as JSON."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from cmixup.errors import InputError, check_choice, shortened
from cmixup.files import PREPROCESSING


@dataclass(frozen=True)
class Preprocessing(ABC):
    """The base of all kinds of data: names of labels, and the JSON, whose first key is `format`."""

    format: ClassVar[str]
    targets: tuple[str, ...]  # names of the labels
    units: tuple[str, ...]  # of the labels, such as "%" or "days"; "" where none is known

    @property
    @abstractmethod
    def in_shape(self) -> tuple[int, ...]:
        """Shape of an input."""

    @property
    def labels(self) -> str:
        """The targets with their units, in words."""
        return with_units(self.targets, self.units or ("",) * len(self.targets))

    @property
    def read_columns(self) -> list[str]:
        """Columns by which numbers without names are read, in the order of the file; none if names are needed."""
        return []

    def as_given(self, new: Any) -> Any:
        """Return new rows as what `apply` takes, here a data frame: other forms of the same, in the units of the file.

        These are a frame of polars, a dict of columns or of one row, a list of such, and lists or arrays of numbers by
        `read_columns`. What is none of them raises `InputError`.
        """
        import pandas as pd

        if isinstance(new, pd.DataFrame):
            return new
        names = self.read_columns
        try:
            if hasattr(new, "columns"):  # of polars
                new = new.collect() if hasattr(new, "collect") else new
                return pd.DataFrame({name: new[name].to_list() for name in new.columns})
            if isinstance(new, Mapping):
                return pd.DataFrame(dict(new) if any(map(pd.api.types.is_list_like, new.values())) else [new])
            if isinstance(new, pd.Series):
                return new.to_frame().T
            new = new.detach() if hasattr(new, "detach") else new
            rows = list(new) if isinstance(new, list | tuple) else np.asarray(new)
            if len(rows) and all(isinstance(row, Mapping) for row in rows):
                return pd.DataFrame(rows)
            if names and all(len(row) == len(names) for row in rows):
                return pd.DataFrame(rows, columns=names)
        except (AttributeError, TypeError, ValueError, RuntimeError):  # of no length, of several lengths, or no frame
            pass
        expected = "a data frame, a dict of columns or a list of dicts"
        expected += f", or numbers in {len(names)} columns ({shortened(names)})" if names else ""
        actual = f"{type(new).__name__} {tuple(getattr(new, 'shape', ())) or ''}".strip()
        raise InputError(f"rows must be {expected}; scaled=True takes inputs as the model reads them; got {actual}")

    @abstractmethod
    def apply(self, new: Any, source: str = "rows") -> Any:
        """Return N inputs `(N, *in_shape)` float32: an array, or a `cmixup.data.Indexable` with a `batch_size`.

        What the run cannot read raises `InputError`, whose line calls it `source`.
        """

    def predictions(self, new: Any, values: np.ndarray) -> Any:
        """Return outputs `(N, d_y)`, in the labels' scale, as a data frame with a column for every target."""
        import pandas as pd

        return pd.DataFrame(values, columns=list(self.targets))

    def to_json(self) -> str:
        """Return it as JSON text."""
        content = {"format": self.format, **asdict(self)}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, source: str = PREPROCESSING) -> Self:
        """Return what `to_json` made the text of; other text is an `InputError` that calls it `source`."""
        try:
            content: dict[str, Any] = json.loads(text)
            check_choice("format", content.pop("format"), (cls.format,))
            return cls(**cls.read_fields(content))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise InputError(f"{source} does not hold what a run keeps there ({cls.format})") from None

    @classmethod
    def read_fields(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields as they stand in the JSON: its lists are tuples."""
        return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}


def with_units(names: Sequence[str], units: Sequence[str]) -> str:
    """Return names of columns with their units, in words."""
    return ", ".join(f"{name} in {unit}" if unit else name for name, unit in zip(names, units, strict=True))
