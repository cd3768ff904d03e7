"""`TabularRegressor.save` and `load`: exact, and nothing of a file is run."""

import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import PowerTransformer

from cmixup import InputError
from cmixup.sklearn import TabularRegressor, persistence

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(90, 3)), columns=["a", "b", "c"]).assign(k=pd.Categorical(list("uvw") * 30))
Y = np.exp(np.column_stack([X["k"].cat.codes, X["a"]]) + 0.5 * RNG.normal(size=(90, 2)))
X.loc[::9, "a"] = np.nan


def fitted(**options: Any) -> TabularRegressor:
    return TabularRegressor(
        **{"hidden_layer_sizes": (8, 4), "members": 2, "epochs": 2, "random_state": 0, **options}
    ).fit(X, Y)


@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": "validated"},
        {"bandwidth": ("std", 0.3), "random_state": None},
        {"bandwidth": np.inf, "hidden_layer_sizes": ()},
        {"bandwidth": ["fraction", 0.5], "early_stopping": False},
        {"loss": "quantile", "quantiles": (0.2, 0.8)},
        {"loss": "absolute", "target_transform": "log"},
    ],
)
def test_a_round_trip_is_exact(tmp_path: Path, options: dict[str, Any]) -> None:
    model = fitted(**options)
    model.save(tmp_path / "model")
    again = TabularRegressor.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    one, two = ({**vars(m), **vars(m._table), **vars(m._intervals)} for m in (model, again))
    assert one.keys() == two.keys()
    for name in one.keys() - {"_held_out", "_table", "_intervals"}:  # rows stay out of the file
        np.testing.assert_equal(two[name], one[name])
        assert type(two[name]) is type(one[name]), name
    assert two["_trees"] is not None
    assert np.array_equal(again.predict(X), model.predict(X))
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))  # noqa: S301 - our own


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path: Path) -> None:
    numbers = {"alpha": np.float32(2.0), "epochs": np.int64(1), "cv": np.int64(3)}
    fitted(hidden_layer_sizes=np.array([4, 4]), **numbers).save(tmp_path / "model")
    again = TabularRegressor.load(tmp_path / "model")
    assert (again.alpha, again.epochs, again.cv, again.hidden_layer_sizes) == (2.0, 1, 3, (4, 4))


def test_requests_and_an_index_of_columns_are_no_obstacle(tmp_path: Path) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = TabularRegressor((8,), epochs=1, categorical_features=X.columns[-1:], random_state=0)
        model.set_fit_request(sample_weight=True).fit(X, Y).save(tmp_path / "model")
    assert np.array_equal(TabularRegressor.load(tmp_path / "model").predict(X), model.predict(X))


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        TabularRegressor().save(tmp_path / "model")
    for options in ({"random_state": np.random.default_rng(0)}, {"target_transform": PowerTransformer()}):
        with pytest.raises(
            InputError, match=f"{next(iter(options))} must be a number, a text, or a tuple of these to be"
        ):
            fitted(**options).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        TabularRegressor.load(tmp_path / "none")


@cache
def fitted_once() -> TabularRegressor:
    return fitted()


class Evil:
    def __reduce__(self) -> Any:
        return print, ("run",)


def rewritten(path: Path, save: Any = np.savez, signed: bool = True, **changes: Any) -> None:
    """Save an estimator with other arrays, and other values in its JSON: attributes of `fitted` one by one.

    If `signed`, the file has the digest of what it holds.
    """
    fitted_once().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    saved = json.loads(str(arrays["json"]))
    for key in saved.keys() & changes.keys():
        value = changes.pop(key)
        saved[key] = {"fields": saved[key]["fields"] | value} if isinstance(value, dict) else value
    arrays = {name: array for name, array in arrays.items() if name != changes.get("without")}
    changes.pop("without", None)
    arrays |= {"json": np.array(json.dumps(saved)), **changes}
    digest = arrays.pop("digest")
    save(path, digest=np.array(persistence._digest(arrays)) if signed else digest, **arrays)


GOOD = {"coefs_.0": np.zeros((5, 8, 8), np.float32), "_table.pieces": np.array([[2.0, 0, 1, 0, 1]])}


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "something else"}, {"params": {"unknown": 1}}, {"without": "coefs_.1"},
        {"coefs_.0": np.array([Evil()])}, {"fitted": {"n_features_in_": 5}}, {**GOOD, "signed": False},
        {"json": np.array("[" * 10**5 + "]" * 10**5)},
        {"save": np.savez_compressed, "coefs_.0": np.zeros((3, 2**16), np.float32)},  # unpacks to more than it is
        b"", b"no archive", pickle.dumps(Evil()),
    ],
)  # fmt: skip
def test_what_save_never_writes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: Any) -> None:
    path = tmp_path / "model.npz"
    rewritten(path, **GOOD)
    TabularRegressor.load(path)
    path.write_bytes(changes) if isinstance(changes, bytes) else rewritten(path, **changes)
    with pytest.raises(InputError, match=r"path must be a file (of the format|that TabularRegressor\.save wrote, got)"):
        TabularRegressor.load(path)
    assert capsys.readouterr().out == ""  # no code has run
