"""`CMixupRegressor.save` and `load`: exact, and nothing of a file is run."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from cmixup import InputError
from cmixup.sklearn import CMixupRegressor

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(30, 3)), columns=["a", "b", "c"])
Y = RNG.normal(size=30)


def fitted(**options: Any) -> CMixupRegressor:
    return CMixupRegressor(**{"hidden_layer_sizes": (8, 4), "epochs": 2, "random_state": 0, **options}).fit(X, Y)


@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": "auto"},
        {"bandwidth": ("std", 0.3), "random_state": None},
        {"bandwidth": np.inf, "hidden_layer_sizes": (), "layer": "input"},
        {"bandwidth": ["fraction", 0.5], "early_stopping": False},
    ],
)
def test_a_round_trip_is_exact(tmp_path: Path, options: dict[str, Any]) -> None:
    model = fitted(**options)
    model.save(tmp_path / "model")
    again = CMixupRegressor.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert vars(again).keys() == vars(model).keys()
    for name, value in vars(model).items():
        np.testing.assert_equal(getattr(again, name), value)
        assert type(getattr(again, name)) is type(value), name
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))  # noqa: S301 - our own


def test_categories_gaps_and_pieces_come_back(tmp_path: Path) -> None:
    x = pd.DataFrame({"a": RNG.normal(size=200), "b": pd.Categorical(RNG.choice(["u", "v"], 200)), "c": 7})
    x.loc[3, "a"] = np.nan
    model = CMixupRegressor((4,), epochs=1, bandwidth=0, categorical_features=["b", "c"], random_state=0)
    model.fit(x, RNG.normal(size=200)).save(tmp_path / "model")
    again = CMixupRegressor.load(tmp_path / "model")
    assert len(vars(again)["_pieces"]) == 4
    assert again.coefs_[0].shape == (5, 1 + 1 + 2 + 1 + 4, 4)
    assert np.array_equal(again.predict(x), model.predict(x))


def test_shapes_of_labels_come_back(tmp_path: Path) -> None:
    model = CMixupRegressor((4,), epochs=1, random_state=0).fit(X.to_numpy(), Y[:, None])
    model.save(tmp_path / "model.npz")
    again = CMixupRegressor.load(str(tmp_path / "model.npz"))
    assert again.predict(X.to_numpy()).shape == (30, 1)
    assert not hasattr(again, "feature_names_in_")


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path: Path) -> None:
    fitted(alpha=np.float32(2.0), epochs=np.int64(1), hidden_layer_sizes=np.array([4, 4])).save(tmp_path / "model")
    again = CMixupRegressor.load(tmp_path / "model")
    assert (again.alpha, again.epochs, again.hidden_layer_sizes) == (2.0, 1, (4, 4))


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        CMixupRegressor().save(tmp_path / "model")
    with pytest.raises(InputError, match="random_state must be a number, a text, or a tuple of these to be saved, got"):
        fitted(random_state=np.random.default_rng(0)).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


class Evil:
    def __reduce__(self) -> Any:
        return print, ("run",)


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.npz"
    fitted().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    saved = json.loads(str(arrays["json"]))

    def with_json(**changes: Any) -> dict[str, Any]:
        return {**arrays, "json": np.array(json.dumps({**saved, **changes}))}

    missing = {name: value for name, value in arrays.items() if name != "coef1"}
    good = {
        **arrays,
        "coef0": np.pad(arrays["coef0"], [(0, 0), (0, 1), (0, 0)]),
        "_pieces": np.array([[2.0, 0, 1, 0, 1]]),
    }
    np.savez(path, **good)
    CMixupRegressor.load(path)
    for content in (
        with_json(format="something else"), with_json(params={**saved["params"], "unknown": 1}), with_json(layers=2),
        with_json(numbers={**saved["numbers"], "_levels": [None, None, ["u"]]}), missing,
        *({**good, "_pieces": np.array([piece])}
          for piece in ([3.0, 0, 1, 0, 1], [0.5, 0, 1, 0, 1], [2.0, 0, 0, 0, 1], [2.0, 0, 1, 0, 0])),
        {**arrays, "coef0": arrays["coef0"][:, :-1]}, {**arrays, "coef0": np.array([Evil()])}, {},
    ):  # fmt: skip
        np.savez(path, **content)
        with pytest.raises(InputError, match="path must be a file"):
            CMixupRegressor.load(path)
    for text in (b"", b"no archive", pickle.dumps(Evil())):
        path.write_bytes(text)
        with pytest.raises(InputError, match=r"path must be a file that CMixupRegressor\.save wrote"):
            CMixupRegressor.load(path)
    assert capsys.readouterr().out == ""
    with pytest.raises(FileNotFoundError):
        CMixupRegressor.load(tmp_path / "none")


@pytest.mark.parametrize(
    "changes",
    [
        {"x_scale_": [1.0, np.nan, 1.0]}, {"y_mean_": [np.inf]}, {"x_mean_": ["a", "b", "c"]},
        {"y_scale_": np.array([1j])}, {"x_mean_": np.zeros(3, "datetime64[D]")}, {"bandwidths_": ["text"]},
        {"coef0": np.full((5, 3, 8), np.nan, np.float32)}, {"numbers": {"n_features_in_": 4}},
        {"numbers": {"_one_dimensional": "yes"}}, {"feature_names": ["a", "b"]}, {"feature_names": [1, 2, 3]},
    ],
)  # fmt: skip
def test_what_fit_never_leaves_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "model.npz"
    fitted().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    saved = json.loads(str(arrays["json"]))
    saved["numbers"].update(changes.pop("numbers", {}))
    saved["feature_names"] = changes.pop("feature_names", saved["feature_names"])
    np.savez(path, **{**arrays, **changes, "json": np.array(json.dumps(saved))})
    with pytest.raises(InputError, match=r"path must be a file that CMixupRegressor\.save wrote, got .*: "):
        CMixupRegressor.load(path)


def test_a_file_that_unpacks_to_more_than_it_is_and_deep_json_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    fitted().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez_compressed(path, **{**arrays, "coef0": np.zeros((3, 2**16), np.float32)})
    with pytest.raises(InputError, match="it is packed"):
        CMixupRegressor.load(path)
    np.savez(path, **{**arrays, "json": np.array("[" * 10**5 + "]" * 10**5)})
    with pytest.raises(InputError, match="recursion"):
        CMixupRegressor.load(path)
