"""Tables of arguments that are refused: a call, and words of its error."""

from collections.abc import Callable, Iterable
from functools import partial

import pytest

from cmixup.errors import InputError

Bad = list[tuple[Callable[[], object], str]]


def bad(function: Callable[..., object], values: Iterable[object], message: str) -> Bad:
    """A call with each value, and the words of its error, in which {!r} stands for the value."""
    return [(partial(function, value), message.format(value)) for value in values]


def refused(table: Bad) -> Callable[..., None]:
    """The test of a table."""

    @pytest.mark.parametrize(("call", "message"), table, ids=[message for _, message in table])
    def test(call: Callable[[], object], message: str) -> None:
        with pytest.raises(InputError) as stop:
            call()
        assert message in str(stop.value)

    return test
