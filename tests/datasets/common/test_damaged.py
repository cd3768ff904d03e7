"""What reading a damaged text of numbers says."""

from pathlib import Path

import pytest

from cmixup.errors import InputError
from datasets.common.damaged import LONGEST_REASON, naming, read_numbers


@pytest.mark.filterwarnings("ignore:loadtxt")
@pytest.mark.parametrize(
    ("content", "said"),
    [("", "holds no numbers"), ("# a comment\n\n", "holds no numbers"), ("1 2\n3\n", "is not a table of numbers: "),
     ("a b\n", "is not a table of numbers: could not convert string 'a' to float64")],
)  # fmt: skip
def test_a_text_without_numbers_is_named(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=f"rows.txt {said}"):
        read_numbers(path)


def test_numbers_are_read_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("1 2\n3 4\n")
    assert read_numbers(path).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_reason_is_one_short_line() -> None:
    with pytest.raises(InputError) as caught, naming("x", "a thing"):
        raise MemoryError("a\nb " * 1000)
    assert str(caught.value).startswith("x is not a thing: a b a b")
    assert len(str(caught.value)) <= len("x is not a thing: ") + LONGEST_REASON
