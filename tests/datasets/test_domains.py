"""Splits by whole domains, and values that a file marks unknown."""

from __future__ import annotations

import numpy as np
import pytest

from cmixup.errors import InputError
from datasets.common.base import fill_missing
from datasets.common.domain_table import split_by_domain
from datasets.crime import Crime
from datasets.skillcraft import SkillCraft


def test_split_by_domain_follows_the_released_rule() -> None:
    # Rows a domain 4, 3, 2, 1 of ids 1, 2, 5, 9: cumulative 4, 7, 9, 10; int(0.7 N) = 7 is reached at id 2, and
    # 7 + int(0.1 N) = 8 at id 5.
    domain = np.array([9, 5, 2, 1, 1, 2, 5, 1, 2, 1])
    rows = split_by_domain(domain)
    assert sorted(domain[rows["train"]].tolist()) == [1, 1, 1, 1]
    assert sorted(domain[rows["val"]].tolist()) == [2, 2, 2]
    assert sorted(domain[rows["test"]].tolist()) == [5, 5, 9]


@pytest.mark.parametrize("domain", [[1, 1, 1], [1, 1, 2, 2], [1] * 99 + [2]])
def test_too_few_domains_are_refused(domain: list[int]) -> None:
    with pytest.raises(InputError, match="domain has"):
        split_by_domain(np.array(domain))


def test_unknown_values_get_the_mean_of_the_fitted_rows() -> None:
    x = np.array([[1.0, np.nan], [3.0, 10.0], [np.nan, 20.0], [np.nan, 90.0]])
    np.testing.assert_array_equal(
        fill_missing(x, np.array([0, 1, 2])), [[1.0, 15.0], [3.0, 10.0], [2.0, 20.0], [2.0, 90.0]]
    )
    np.testing.assert_array_equal(fill_missing(x, None)[:, 1], [40.0, 10.0, 20.0, 90.0])


def test_a_column_without_any_known_value_is_refused() -> None:
    with pytest.raises(InputError, match="column 1 of x"):
        fill_missing(np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 4.0]]), np.array([0, 1]))


@pytest.mark.parametrize(("dataset", "domains"), [(Crime, (31, 6, 9)), (SkillCraft, (4, 1, 3))])
def test_no_domain_is_in_two_splits_and_worst_is_one_of_them(dataset: type, domains: tuple[int, ...]) -> None:
    data = dataset(synthetic=True).load(0)
    found = [set(split.domain.tolist()) for split in (data.train, data.val, data.test)]
    assert tuple(map(len, found)) == domains
    assert len(set.union(*found)) == sum(domains)
    assert data.worst == ("rmse",)
