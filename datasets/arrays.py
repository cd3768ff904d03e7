"""Arrays of your own: inputs x, labels y, and domains or parts if there are any."""

import math
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError, check_choice, check_nonnegative
from cmixup.inputs.arrays import ArrayPreprocessing, chunks
from cmixup.inputs.spread import VANISH, varies
from datasets.common.base import SPLITS, Dataset, label_names, smooth_labels
from datasets.common.table.files import OTHERS, by_start
from datasets.common.table.problems import labels_seen
from datasets.common.table.splits import PARTS, split_own

GB = 1e9
HDF5 = b"\x89HDF\r\n\x1a\n"


class Arrays(Dataset):
    """Any array of numbers with labels: `arrays=data.npz`, or `x=x.npy y=y.npy`.

    Origin: the user's. y: the array y, in its own units. x: the array x, `(N, ...)`, standardised by the training rows:
    each column of a table, all entries alike of other shapes.
    Shapes: x (N, ...), y (N, d_y); split 60 / 20 / 20 anew for every run seed, by whole domains if there is an array
    `domain` (N,), or as the words of an array `split` (N,) say.
    Licence: the user's to know. Citation: the user's to give.

    Args:
        path: an .npz or HDF5 file with the arrays, also called X, arr_0 and arr_1, or x_train, y_train, x_test, y_test.
        x, y: .npy files instead.
        scaling: "standard", or "none" for inputs as they are.
        memory: GB that inputs may take; others stay in their file (.npy, .h5) until a batch needs them.
        synthetic: use synthetic data.
    """

    name = "arrays"
    unit = "the array's own"
    place = "a file of your own: arrays="
    user_files = ("path", "x", "y")
    baselines = True

    def __init__(
        self, path: str = "", *, x: str = "", y: str = "", scaling: str = "standard", memory: float = 2.0,
        synthetic: bool = False,
    ):  # fmt: skip
        super().__init__(synthetic)
        self.path, self.x, self.y = path, x, y
        self.places = {word: Path(file) for word, file in (("arrays", path), ("x", x), ("y", y)) if file}
        self.scaling = check_choice("scaling", scaling, ("standard", "none"))
        self.memory = check_nonnegative("memory", memory)

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The arrays by their names, whose lengths and labels are checked."""
        if self.synthetic:
            x = np.random.default_rng(0).random((200, 6))
            return {"x": x, "y": smooth_labels(x, np.random.default_rng(1), 20, 4)}
        arrays = self._read()
        if absent := [name for name in "xy" if name not in arrays]:
            there = ", ".join(arrays) or "none"
            raise InputError(f"{self.places['arrays']} has no array {absent[0]}; there are {there}")
        sizes = {name: arrays[name].shape[:1] for name in ("x", "y", "domain", "split") if name in arrays}
        if len(set(sizes.values())) > 1 or sizes["x"] in ((), (0,)):
            raise InputError(f"{self._source}: arrays must have as many rows, 1 or more, got {sizes}")
        if len(arrays["x"].shape) < 2 or 0 in arrays["x"].shape:
            raise InputError(f"{self._source}: x must be (N, ...), got {tuple(arrays['x'].shape)}")
        for name in ("domain", "split"):
            if name in arrays and len(arrays[name].shape) > 1:
                raise InputError(f"{self._source}: {name} must be (N,), got {tuple(arrays[name].shape)}")
        y = np.concatenate([block for _, block in chunks(arrays["y"], f"{self._source}: y", gaps=True)])
        if y.ndim > 2 or (y := y.reshape(len(y), -1)).shape[1] == 0:
            raise InputError(f"{self._source}: y must be (N,) or (N, d_y), got {tuple(arrays['y'].shape)}")
        labels_seen(label_names(y), y, self._source, log=True)
        return {**arrays, "y": y}

    def _read(self) -> dict[str, Any]:
        """Return the arrays of the files that are given."""
        if set(self.places) not in ({"arrays"}, {"x", "y"}):
            raise InputError(f"give arrays=data.npz, or x=x.npy and y=y.npy; got {', '.join(self.places) or 'neither'}")
        if "arrays" in self.places:
            return read_arrays(self.places["arrays"])
        for word, file in self.places.items():
            if file.suffix != ".npy":
                raise InputError(f"{word} must be a .npy file, got {file}; arrays= takes others")
        return {word: read_arrays(file, word)["x"] for word, file in self.places.items()}

    @property
    def _source(self) -> str:
        return ", ".join(map(str, self.places.values()))

    def load(self, seed: int) -> RegressionData:
        x, y, rng = self.arrays["x"], self.arrays["y"], np.random.default_rng(seed)
        domain, words = self._words("domain"), self._words("split")
        numbers = np.zeros(len(y)) if domain is None else np.unique(domain, return_inverse=True)[1]
        known = np.flatnonzero(~np.isnan(y).all(axis=1))
        named = None
        if words is not None:
            named = dict(zip((known + 1).tolist(), words[known].tolist(), strict=True)), f"{self._source}: split"
        rows = split_own(len(known), rng, self._source, None if domain is None else numbers[known], named)
        rows = {part: known[of] for part, of in rows.items()}
        notes = [f"{len(y) - len(known)} of {len(y)} rows have no label and are left out"] * (len(known) < len(y))
        names = label_names(y)
        made = ArrayPreprocessing(names, ("",) * len(names), tuple(x.shape[1:]), *self._moments(rows["train"]))
        lazy = {part: made.rows(x, rows[part]) for part in SPLITS}
        fits = 4 * math.prod(x.shape) <= self.memory * GB
        splits = (
            self.make_split(part, of[torch.arange(len(of))] if fits else of, y[rows[part]], numbers[rows[part]])
            for part, of in lazy.items()
        )
        worst = () if domain is None else ("rmse",)
        checksums = {} if self.synthetic else self.checksums
        return self.assemble(seed, splits, checksums, notes, preprocessing=made.to_json(), worst=worst)

    def _words(self, name: str) -> np.ndarray | None:
        """Return an array of texts or numbers (N,), if it is there."""
        if name not in self.arrays:
            return None
        array = np.asarray(self.arrays[name][:])
        return np.array([word.decode() for word in array]) if array.dtype.kind in "SO" else array

    def _moments(self, train: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return mean and standard deviation over the training rows, of each column of a table, else of all entries."""
        from sklearn.preprocessing import StandardScaler

        x, scaler = self.arrays["x"], StandardScaler()
        trains = np.isin(np.arange(len(x)), train)
        width = x.shape[1] if x.ndim == 2 else 1
        low, high = np.full(width, np.inf), np.full(width, -np.inf)
        for start, block in chunks(x, f"{self._source}: x"):
            if len(mine := block[trains[start : start + len(block)]].reshape(-1, width)):
                low, high = np.minimum(low, mine.min(axis=0)), np.maximum(high, mine.max(axis=0))
                scaler.partial_fit(mine)
        if self.scaling == "none":
            return (0.0,), (1.0,)
        vary = varies(low, high, int(scaler.n_samples_seen_))
        std = np.where(vary, np.sqrt(scaler.var_), VANISH)
        return tuple(np.where(vary, scaler.mean_, low).tolist()), tuple(std.tolist())


def read_arrays(path: Path, word: str = "arrays") -> dict[str, Any]:
    """Return the arrays of a file by their names; that of a .npy file is called x.

    Those of .npy and .h5 files stay in the file until rows are asked for; an .npz file is read whole.
    """
    if not path.is_file():
        raise InputError(f"{word}: {'a folder, not a file:' if path.is_dir() else 'no such file'} {path}")
    with path.open("rb") as stream:
        hdf5 = (start := stream.read(8)) == HDF5 or path.suffix.lower() in (".h5", ".hdf5")
    what = None if hdf5 else by_start(start, OTHERS)
    try:
        if hdf5:
            import h5py

            found = dict[str, Any]()
            h5py.File(path).visititems(lambda name, one: found.update({name: one} if hasattr(one, "dtype") else {}))
            return _by_usual_names(found)
        read = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(read, np.ndarray):
            return {"x": read}
        if not any(name.endswith("data.pkl") for name in read.files):
            return _by_usual_names({name: read[name] for name in read.files})
        what = "a file of torch.save"
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if "allow_pickle" in reason:  # NumPy's advice runs code of the file
            reason = "it is of another kind, or an array in it holds objects"
        if not what or "NumPy" in what:
            raise InputError(f"{word} {path} holds no arrays (.npz, .npy, .h5): {reason}") from None
    raise InputError(f"{word} {path} is {what}; what can be read is .npz, .npy and HDF5: np.savez(path, x=x, y=y)")


def _by_usual_names(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return arrays as x and y where they are X and Y, arr_0 and arr_1, or of training and test in x_train, y_test.

    The latter, also called train_x or in a group train/x, become one, with their parts as `split`. A group that has a
    name alone is left out of it.
    """
    lasts, named = [name.rpartition("/")[2] for name in arrays], dict[str, Any]()
    for name, last in zip(arrays, lasts, strict=True):
        words = re.split("[/_]", name.lower())
        of = [word for word in words if word in ("x", "y", *PARTS)]
        key = "_".join(sorted(of, key=PARTS.__contains__)) if len(of) > 1 else last if lasts.count(last) == 1 else name
        named[name if key in named else key] = arrays[name]
    parts = [part for part in dict.fromkeys(PARTS) if {f"x_{part}", f"y_{part}"} <= {*named}]
    if parts and "x" not in map(str.lower, named):
        each = {part: tuple(np.asarray(named[f"{name}_{part}"]) for name in "xy") for part in parts}
        x, y = (np.concatenate(of) for of in zip(*each.values(), strict=True))
        split = {"split": np.repeat(parts, [len(one[0]) for one in each.values()])}
        return {"x": x, "y": y, **(split if len(parts) > 1 else {})}
    usual = {"x": ("x", "X", "arr_0"), "y": ("y", "Y", "arr_1")}
    found = {new: next((name for name in names if name in named), "") for new, names in usual.items()}
    return {**named, **{new: named[name] for new, name in found.items() if name}}
