"""Splits by whole domains, and values that a file marks unknown."""

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from datasets.common.base import fill_missing
from datasets.common.domain_table import leave_domains_out, released_order, split_by_domain
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


def test_unknown_values_get_the_mean_of_the_fitted_rows() -> None:
    x = np.array([[1.0, np.nan], [3.0, 10.0], [np.nan, 20.0], [np.nan, 90.0]])
    np.testing.assert_array_equal(
        fill_missing(x, np.array([0, 1, 2])), [[1.0, 15.0], [3.0, 10.0], [2.0, 20.0], [2.0, 90.0]]
    )
    np.testing.assert_array_equal(fill_missing(x, None)[:, 1], [40.0, 10.0, 20.0, 90.0])


@pytest.mark.parametrize("seed", [0, 7])
def test_the_released_order_groups_by_domain_and_permutes_once_with_the_runs_seed(seed: int) -> None:
    """Each step is written out as in the authors' loaders, whose global generator the run's seed goes to."""
    domain = np.random.default_rng(1).choice([3, 1, 8, 5, 9, 2], 400, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
    ours = released_order(split_by_domain(domain), domain, seed)
    np.random.seed(seed)  # noqa: NPY002 - what the authors do
    for part, rows in split_by_domain(domain).items():
        grouped = [k for d in sorted(set(domain[rows].tolist())) for k in range(400) if domain[k] == d]
        expected = np.array(grouped)[np.random.permutation(len(grouped))]  # noqa: NPY002
        np.testing.assert_array_equal(ours[part], expected)


def test_the_order_of_the_rows_is_an_option_and_changes_nothing_else() -> None:
    plain = Crime("all", "file", synthetic=True).load(0)
    one, other = (Crime("all", "released", synthetic=True).load(seed) for seed in (0, 1))
    assert torch.equal(Crime("all", synthetic=True).load(5).train.x, plain.train.x)
    assert not torch.equal(one.train.x, other.train.x)
    for split in ("train", "val", "test"):
        rows = [
            sorted(torch.cat([s.x, s.y, s.domain[:, None]], dim=1).tolist())
            for s in (getattr(data, split) for data in (plain, one, other))
        ]
        assert rows[0] == rows[1] == rows[2]
    with pytest.raises(InputError, match="row_order must be one of file, released, got 'random'"):
        Crime(row_order="random")


@pytest.mark.parametrize(("dataset", "domains"), [(Crime, (31, 6, 9)), (SkillCraft, (4, 1, 3))])
def test_no_domain_is_in_two_splits_and_worst_is_one_of_them(dataset: type, domains: tuple[int, ...]) -> None:
    data = dataset(synthetic=True).load(0)
    found = [set(split.domain.tolist()) for split in (data.train, data.val, data.test)]
    assert tuple(map(len, found)) == domains
    assert len(set.union(*found)) == sum(domains)
    assert data.worst == ("rmse",)


def test_folds_validate_on_every_training_domain_once_and_on_no_other() -> None:
    domain = np.array([7, 1, 1, 4, 5, 5, 8, 9, 4])  # 1, 4, 5, 7 train, in the groups 1, 4 and 5, 7
    rows = {"train": np.array([0, 1, 2, 3, 4, 5, 8]), "val": np.array([6]), "test": np.array([7])}
    one, other = (leave_domains_out(rows, domain, 2, seed) for seed in (1000, 1001))
    assert [one[part].tolist() for part in ("train", "val", "test")] == [[0, 4, 5], [1, 2, 3, 8], [7]]
    assert [other[part].tolist() for part in ("train", "val", "test")] == [[1, 2, 3, 8], [0, 4, 5], [7]]
    singly = [leave_domains_out(rows, domain, 4, seed)["val"] for seed in range(4)]
    assert [sorted(set(domain[each].tolist())) for each in singly] == [[1], [4], [5], [7]]
    for folds in (1, 5):
        with pytest.raises(InputError, match=f"folds must be 0 or from 2 to the 4 training domains, got {folds}"):
            leave_domains_out(rows, domain, folds, 0)


def test_scaling_is_fitted_without_the_domains_that_are_left_out() -> None:
    table = SkillCraft("standard", folds=4, synthetic=True)
    data, plain = table.load(3), SkillCraft(synthetic=True).load(3)
    assert set(data.train.domain.tolist()) == {1, 2, 3}
    assert set(data.val.domain.tolist()) == {4}
    assert data.train.x.mean(dim=0).abs().max() < 1e-5
    assert data.val.x.mean(dim=0).abs().max() > 1e-3
    assert torch.equal(data.test.y, plain.test.y)
    assert data.notes[-1].startswith("validation: the training domains, in 4 groups")
    assert not any("groups" in note for note in plain.notes)
