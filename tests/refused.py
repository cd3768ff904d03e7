"""Tables of arguments that are refused: a call, and words of its error."""

from collections.abc import Callable, Iterable
from functools import partial

import pytest

from cmixup.errors import InputError

Bad = list[tuple[Callable[[], object], str]]


def each(function: Callable[..., object], values: Iterable[object], said: str) -> Bad:
    """A call with each value, and the words of its error, in which {!r} stands for the value."""
    return [(partial(function, value), said.format(value)) for value in values]


def refused(table: Bad) -> Callable[..., None]:
    """The test of a table."""

    @pytest.mark.parametrize(("call", "said"), table, ids=[said for _, said in table])
    def test(call: Callable[[], object], said: str) -> None:
        with pytest.raises(InputError) as stop:
            call()
        assert said in str(stop.value)

    return test
