from dataclasses import replace

import torch

from tests.helpers import Lazy, make_split


def test_lazy_inputs_are_not_read_when_the_split_is_made() -> None:
    x, whole = Lazy(torch.zeros(4, 2)), make_split(4)
    split = replace(whole, x=x)
    assert (x.asked, len(split)) == ([], 4)
    assert (split.stackable, whole.stackable) == (False, True)
