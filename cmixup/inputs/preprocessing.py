"""What a run keeps, as JSON, of how new rows become its inputs, and its outputs predictions with names."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from cmixup.errors import InputError, check_choice
from cmixup.files import PREPROCESSING


@dataclass(frozen=True)
class Preprocessing(ABC):
    """What all kinds of data share: names of labels, and the JSON, whose first key is `format`."""

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

    def takes(self, new: Any) -> bool:
        """Return whether `new` is of this kind, here a data frame; else it is inputs as the model reads them."""
        return hasattr(new, "iloc") and getattr(new, "ndim", 0) == 2

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
        given = {"format": self.format, **asdict(self)}
        return json.dumps(given, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, source: str = PREPROCESSING) -> Self:
        """Return what `to_json` made the text of; other text is an `InputError` that calls it `source`."""
        try:
            given: dict[str, Any] = json.loads(text)
            check_choice("format", given.pop("format"), (cls.format,))
            return cls(**cls.read_fields(given))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise InputError(f"{source} does not hold what a run keeps there ({cls.format})") from None

    @classmethod
    def read_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields as they stand in the JSON: its lists are tuples."""
        return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}


def with_units(names: Sequence[str], units: Sequence[str]) -> str:
    """Return names of columns with their units, in words."""
    return ", ".join(f"{name} in {unit}" if unit else name for name, unit in zip(names, units, strict=True))
