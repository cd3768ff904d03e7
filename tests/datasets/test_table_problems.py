"""Ten tables with a planted problem each, tables without one, and the study's 30 real tables."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cmixup.tables.checks import far_labels, leak_score, rank_correlation
from datasets.common.table.problems import groups_of, in_both
from datasets.csv import Csv

Change = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


def clean(seed: int, n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    area, rooms = rng.lognormal(4, 0.4, n), rng.integers(1, 7, n)
    city = rng.choice(["Bern", "Basel", "Chur"], n)
    price = area * 3000 + rooms * 20000 + (city == "Bern") * 5e4 + rng.normal(0, 4e4, n)
    return pd.DataFrame({"area": area, "rooms": rooms, "city": city, "price": price})


def repeated(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return pd.concat([frame, frame.sample(40, random_state=0)]).sample(frac=1, random_state=1)


def twice(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame[:2]]).sample(frac=1, random_state=1)


def relabelled(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    more = frame.sample(30, random_state=0)
    return pd.concat([frame, more.assign(price=more.price * rng.uniform(0.8, 1.2, 30))])


def far(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    frame.loc[[4, 99, 250], "price"] *= 20
    return frame


def sentinel(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    frame["price"] = (frame["price"] - frame["price"].mean()) / 1e4
    frame.loc[7, "price"] = -999
    return frame


PLANTED: dict[str, tuple[Change, str]] = {
    "tax": (lambda f, _: f.assign(tax_paid=(f.price * 0.05).round(2)), "tax_paid alone predicts price"),
    "not monotone": (lambda f, _: f.assign(mirrored=f.price.where(f.price < f.price.median(), -f.price)),
                     "mirrored alone predicts price"),
    "gaps": (lambda f, rng: f.assign(fee=f.price.where(rng.random(len(f)) < 0.4)), "fee alone predicts price"),
    "category": (lambda f, _: f.assign(band="b" + pd.qcut(f.price, 12).cat.codes.astype(str)),
                 "band alone predicts price"),
    "rank": (lambda f, _: f.assign(leak_id=f.price.rank().astype(int)), "leak_id alone predicts price"),
    "ID": (lambda f, _: twice(f.assign(number=np.arange(len(f)))), "number looks like an ID"),
    "customer": (lambda f, rng: f.assign(customer_id=rng.choice(10**8, len(f))), "customer_id looks like an ID"),
    "equal rows": (repeated, "40 rows equal others in features and label"),
    "other labels": (relabelled, "30 rows equal others in all features and have another label"),
    "far": (far, r"price lies far outside in rows 5 \(.*\), 100 \(.*\), 251 \("),
    "sentinel": (sentinel, r"price lies far outside in rows 8 \(-999\)"),
}  # fmt: skip


def problems_of(frame: pd.DataFrame, path: Path, **options: object) -> tuple[str, ...]:
    frame.to_csv(path, index=False)
    return Csv(str(path), target="price", **options).problems()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_the_one_warning(name: str, tmp_path: Path) -> None:
    change, message = PLANTED[name]
    frame = change(clean(1), np.random.default_rng(5))
    (line,) = problems_of(frame, tmp_path / "t.csv")
    assert pd.Series([line]).str.contains(message).all(), line
    assert "dataset." in line or "fix the file" in line


@pytest.mark.parametrize("seed", range(2))
def test_a_clean_table_has_no_warning(seed: int, tmp_path: Path) -> None:
    assert problems_of(clean(seed), tmp_path / "t.csv") == ()


def test_the_option_that_a_line_names_fixes_it(tmp_path: Path) -> None:
    frame = clean(1).assign(tax=lambda f: f.price / 20)
    assert problems_of(frame, tmp_path / "t.csv", drop="tax") == ()
    repeated(clean(1), np.random.default_rng(0)).to_csv(tmp_path / "r.csv", index=False)
    plain, mended = (Csv(str(tmp_path / "r.csv"), target="price", together=x).load(0) for x in (False, True))
    rows = [{tuple(r) for r in d.train.x.tolist()} & {tuple(r) for r in d.test.x.tolist()} for d in (plain, mended)]
    assert 5 <= len(rows[0]) <= 20  # about in_both: 40 pairs, of which 0.24 are apart so
    assert rows[1] == set()
    sizes = [len(part.y) for part in (mended.train, mended.val, mended.test)]
    assert sizes == pytest.approx([264, 88, 88], abs=2)


def test_columns_and_rows_by_hand() -> None:
    assert in_both(np.array([0, 0, 1])) == pytest.approx(2 * 0.2 * 0.6)
    assert groups_of([np.array([1, np.nan, np.nan, 1]), np.array([0, 2, 2, 1])]).tolist() == [0, 2, 2, 1]
    assert rank_correlation(np.array([1.0, 2, 3, 9]), np.array([4.0, 3, 2, -50])) == pytest.approx(-1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    assert leak_score(x, x**2) > 0.99
    assert leak_score(x, x**2 + rng.normal(size=500)) < 0.9
    assert leak_score(rng.normal(size=500), x) < 0.3
    assert far_labels(np.exp(rng.normal(0, 2, 2000))).tolist() == []  # heavy, and no mistake
    assert far_labels(np.append(x, 40.0)).tolist() == [500]
    assert far_labels(np.append(x, [40.0] * 9)).tolist() == []  # so many are a part of the labels
    assert far_labels(np.exp(np.append(x / 2, 2.9))).tolist() == []  # near by its logarithm
