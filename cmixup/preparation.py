"""What a run keeps, as JSON, of how new rows become its inputs; see `cmixup.saved_run.Preprocessing`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from cmixup.errors import InputError, check_choice


@dataclass(frozen=True)
class Preparation:
    """The part that all kinds share but tables: names of labels, and the JSON, whose first key is `format`.

    Attributes:
        targets: names of the labels.
        units: of the labels; "" where none is known.
    """

    format: ClassVar[str]
    targets: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def labels(self) -> str:
        """The targets with their units, in words."""
        return with_units(self.targets, self.units)

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps({"format": self.format, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, source: str) -> Self:
        """Return what `to_json` made the text of.

        Args:
            text: the JSON.
            source: how errors call it.

        Raises:
            InputError: other text.
        """
        try:
            given: dict[str, Any] = json.loads(text)
            check_choice("format", given.pop("format"), (cls.format,))
            return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise InputError(f"{source} does not hold what a run keeps there ({cls.format})") from None


def with_units(names: Sequence[str], units: Sequence[str]) -> str:
    """Return names of columns with their units, in words."""
    return ", ".join(f"{name} in {unit}" if unit else name for name, unit in zip(names, units, strict=True))
