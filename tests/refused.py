"""Tables of arguments that are refused: a call, and words of its error."""

import re
from collections.abc import Callable, Iterable
from functools import partial

from tests.helpers import refuses

Bad = list[tuple[Callable[[], object], str]]


def bad(function: Callable[..., object], values: Iterable[object], message: str) -> Bad:
    """A call with each value, and the words of its error, in which {!r} stands for the value."""
    return [(partial(function, value), message.format(value)) for value in values]


def refused(table: Bad) -> Callable[..., None]:
    """The test of a table, see `tests.helpers.refuses`."""
    return refuses([(call, re.escape(message)) for call, message in table])
