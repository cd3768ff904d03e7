"""Arrays in files: what they become, and the one line that says what cannot be."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.inputs.arrays import ArrayPreprocessing
from datasets.arrays import Arrays

RNG = np.random.default_rng(0)
X, Y = RNG.normal([3, -5, 100], [1, 2, 30], (40, 3)), RNG.normal(size=40)
PARTS = np.array(["train"] * 25 + ["val"] * 5 + ["test"] * 10)


def write_npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **{name: array for name, array in {"x": X, "y": Y, **arrays}.items() if array is not None})
    return path


def test_arrays_of_every_file_are_the_same_data_in_memory_or_not(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.update({"x": X, "y": Y})
    pair = {"x": str(tmp_path / "x.npy"), "y": str(tmp_path / "y.npy")}
    one = Arrays(str(write_npz(tmp_path / "d.npz"))).load(4)
    assert [len(part) for part in (one.train, one.val, one.test)] == [24, 8, 8]
    assert isinstance(one.train.x, torch.Tensor)
    torch.testing.assert_close(one.train.x.mean(dim=0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(one.train.x.std(dim=0, correction=0), torch.ones(3))
    index = torch.tensor([5, 0, 5, 23])
    for options in (pair, {"path": str(tmp_path / "d.h5")}):
        for memory in (1.0, 0.0):
            other = Arrays(**options, memory=memory).load(4)
            assert isinstance(other.train.x, torch.Tensor) == bool(memory)
            assert torch.equal(other.train.x[index], one.train.x[index])
            assert torch.equal(other.test.y, one.test.y)


def test_domains_and_parts_of_the_file_split_it(tmp_path: Path) -> None:
    domain = np.repeat([7, 3, 9, 1], 10)
    data = Arrays(str(write_npz(tmp_path / "d.npz", domain=domain))).load(0)
    parts = [set(part.domain.tolist()) for part in (data.train, data.val, data.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 4
    assert data.worst == ("rmse",)
    data = Arrays(str(write_npz(tmp_path / "d.npz", domain=domain, split=PARTS)), scaling="none").load(0)
    np.testing.assert_array_equal(data.test.x, X[30:].astype(np.float32))
    assert data.test.domain.tolist() == [0] * 10  # domains are numbered in order of their names


def test_baselines_are_the_training_mean_and_ridge_regression_over_the_labels_that_are_known(tmp_path: Path) -> None:
    y = np.stack([X @ [0.5, 1.0, 0.1] + Y, Y], 1)
    y[::4, 1] = np.nan
    data = Arrays(str(write_npz(tmp_path / "d.npz", y=y, split=PARTS)), scaling="none").load(0)
    np.testing.assert_allclose(data.naive["training_mean"]["val"], [np.nanmean(y[:25], 0)] * 5, rtol=1e-5)
    for k in (0, 1):
        known = np.flatnonzero(~np.isnan(y[:25, k]))
        scaled, scale = X[known] - X[known].mean(0), X[:25].std(0)
        rows = np.vstack([scaled / scale, np.eye(3)])  # ridge regression is least squares with a row a column more
        weights, *_ = np.linalg.lstsq(rows, np.append(y[known, k] - y[known, k].mean(), [0, 0, 0]))
        expected = y[known, k].mean() + (X[30:] - X[known].mean(0)) / scale @ weights
        np.testing.assert_allclose(data.naive["ridge"]["test"][:, k], expected, rtol=1e-4, atol=1e-4)
    flat = Arrays(str(write_npz(tmp_path / "d.npz", x=X.reshape(40, 3, 1))))
    assert list(flat.load(0).naive) == ["training_mean"]  # no table


def test_inputs_of_other_shapes_are_scaled_as_a_whole_and_labels_named(tmp_path: Path) -> None:
    data = Arrays(str(write_npz(tmp_path / "d.npz", x=X.reshape(40, 3, 1), y=np.stack([Y, Y], 1)))).load(0)
    made = ArrayPreprocessing.from_json(data.extras["preprocessing.json"], "it")
    assert (made.targets, made.in_shape, len(made.mean)) == (("y1", "y2"), (3, 1), 1)
    assert abs(float(data.train.x.mean())) < 1e-5
    raw = X[:4].reshape(4, 3, 1)
    np.testing.assert_allclose(made.apply(raw)[torch.arange(4)], (raw - made.mean) / made.std, rtol=1e-5)
    for wrong, message in (
        (X, r"new: x must have shape \(N, 3, 1\), got \(40, 3\)"),
        (raw * np.nan, "row 1: a number"),
    ):
        with pytest.raises(InputError, match=message):
            made.apply(wrong, "new")


def test_what_numbers_far_from_zero_differ_by_is_kept(tmp_path: Path) -> None:
    """As times in seconds do; 1e9 + 1 is no float32."""
    plain, far = (Arrays(str(write_npz(tmp_path / "d.npz", x=X + shift))).load(0).train.x for shift in (0, 1e9))
    torch.testing.assert_close(far, plain, atol=1e-4, rtol=0)
    seconds = 1_700_000_000 + (10 * X).round()
    both = (Arrays(str(write_npz(tmp_path / "d.npz", x=seconds.astype(of)))).load(0).train.x for of in ("i4", "i8"))
    torch.testing.assert_close(*both, atol=0, rtol=0)


def test_files_of_the_same_name_have_a_checksum_each(tmp_path: Path) -> None:
    for part, array in (("inputs", X), ("labels", Y)):
        (tmp_path / part).mkdir()
        np.save(tmp_path / part / "train.npy", array)
    files = {"x": str(tmp_path / "inputs/train.npy"), "y": str(tmp_path / "labels/train.npy")}
    before = Arrays(**files).checksums
    np.save(files["x"], 2 * X)
    assert len(before) == 2
    assert Arrays(**files).changed(before)


def spoilt(array: np.ndarray, row: int, value: float) -> np.ndarray:
    array = array.copy()
    array[row] = value
    return array


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no file": ({}, {"path": "{place}/other.npz"}, "arrays: no such file .*other.npz"),
    "nothing": ({}, {"path": ""}, "give arrays=data.npz, or x=x.npy and y=y.npy; got neither"),
    "x alone": ({}, {"path": "", "x": "a.npy"}, "got x"),
    "both": ({}, {"x": "a.npy", "y": "b.npy"}, "got arrays, x, y"),
    "no such x": ({}, {"path": "", "x": "a.npy", "y": "b.npy"}, "x: no such file a.npy"),
    "no array x": ({"x": None}, {}, "d.npz has no array x; there are y"),
    "no array y": ({"y": None}, {}, "d.npz has no array y; there are x"),
    "no arrays": ({}, {"path": "{place}/text.npz"}, "text.npz holds no arrays"),
    "no HDF5": ({}, {"path": "{place}/text.H5"}, "text.H5 holds no arrays .*: .*signature"),
    "torch": ({}, {"path": "{place}/a.pt"}, "is a file of torch.save; what can be read is .npz, .npy and HDF5: np"),
    "netCDF": ({}, {"path": "{place}/a.nc"}, "is a netCDF file; what can be read"),
    "MATLAB": ({}, {"path": "{place}/a.mat"}, "is a MATLAB file; what can be read"),
    "gaps alone": ({"y": np.stack([Y, np.full(40, np.nan)], 1)}, {}, "target 'y2' of .*d.npz has no value in any row"),
    "no table": ({}, {"path": "{place}/text.csv"}, "text.csv holds no arrays .*: it is of another kind, or"),
    "objects": ({"y": np.array([{}] * 40)}, {}, "d.npz holds no arrays .*: it is of another kind, or an array in it"),
    "pair of .npz": (
        {}, {"path": "", "x": "{place}/d.npz", "y": "{place}/d.npz"}, "x must be a .npy file, got .*d.npz",
    ),
    "one label": ({"y": np.ones(40)}, {}, "target 'y' of .*d.npz is 1 in every row: there is nothing to predict"),
    "wide domain": ({"domain": np.zeros((40, 2))}, {}, r"domain must be \(N,\), got \(40, 2\)"),
    "no columns": ({"x": X[:, :0]}, {}, r"x must be \(N, ...\), got \(40, 0\)"),
    "words": ({"y": PARTS}, {}, "y must hold numbers, got dtype <U5"),
    "complex": ({"x": X * 1j}, {}, "x must hold numbers, got dtype complex128"),
    "lengths": ({"y": Y[1:]}, {}, r"as many rows, 1 or more, got {'x': \(40,\), 'y': \(39,\)}"),
    "domains": ({"domain": np.zeros(3)}, {}, r"as many rows.*'domain': \(3,\)"),
    "no rows": ({"x": X[:0], "y": Y[:0]}, {}, "as many rows, 1 or more"),
    "few rows": ({"x": X[:2], "y": Y[:2]}, {}, "rows with a target are 2; train, val and test need one each"),
    "one number": ({"x": np.float64(1)}, {}, "as many rows"),
    "no entries": ({"x": Y}, {}, r"x must be \(N, ...\), got \(40,\)"),
    "wide label": ({"y": np.zeros((40, 1, 1))}, {}, r"y must be \(N,\) or \(N, d_y\), got \(40, 1, 1\)"),
    "NaN in x": ({"x": spoilt(X, 17, np.nan)}, {}, "d.npz: x, row 18: a number is not finite"),
    "infinite y": ({"y": spoilt(Y, 3, np.inf)}, {}, "d.npz: y, row 4: a number is not finite"),
    "one domain": ({"domain": np.zeros(40)}, {}, "groups are 1; train, val and test need one each"),
    "split": ({"split": np.array(["train"] * 39 + ["rest"])}, {}, "split, row 40: the part must be .*got 'rest'"),
    "no test": ({"split": np.array(["train"] * 40)}, {}, "split: no row is of test"),
    "scaling": ({}, {"scaling": "minmax"}, "scaling must be one of standard, none, got 'minmax'"),
    "memory": ({}, {"memory": -1.0}, "memory must be a finite number, 0 or more, got -1.0"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_input_is_one_line_before_training(case: str, tmp_path: Path) -> None:
    arrays, given, message = BAD[case]
    options = {"path": str(write_npz(tmp_path / "d.npz", **arrays))} | given
    torch.save({"x": torch.zeros(3, 2)}, tmp_path / "a.pt")
    texts = {"a.nc": "CDF\1\0\0\0\0", "a.mat": "MATLAB 5.0 MAT-file"}
    for name, text in (texts | dict.fromkeys(("text.npz", "text.H5", "text.csv"), "x,y\n1,2\n")).items():
        (tmp_path / name).write_text(text)
    filled = {key: value.format(place=tmp_path) if isinstance(value, str) else value for key, value in options.items()}
    with pytest.raises(InputError, match=message) as caught:
        Arrays(**filled).load(0)
    assert "\n" not in str(caught.value)
