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
from datasets.common.table.problems import label_notes
from datasets.common.table.splits import PARTS, split_user_rows

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
            names = ", ".join(arrays) or "none"
            raise InputError(f"{self.places['arrays']} has no array {absent[0]}; there are {names}")
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
        label_notes(label_names(y), y, self._source, log=True)
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
        part_words = None
        if words is not None:
            part_words = dict(zip((known + 1).tolist(), words[known].tolist(), strict=True)), f"{self._source}: split"
        rows = split_user_rows(len(known), rng, self._source, None if domain is None else numbers[known], part_words)
        rows = {part: known[part_rows] for part, part_rows in rows.items()}
        notes = [f"{len(y) - len(known)} of {len(y)} rows have no label and are left out"] * (len(known) < len(y))
        names = label_names(y)
        preprocessing = ArrayPreprocessing(names, ("",) * len(names), tuple(x.shape[1:]), *self._moments(rows["train"]))
        inputs_of = {part: preprocessing.rows(x, rows[part]) for part in SPLITS}
        fits = 4 * math.prod(x.shape) <= self.memory * GB
        splits = (
            self.make_split(part, data[torch.arange(len(data))] if fits else data, y[rows[part]], numbers[rows[part]])
            for part, data in inputs_of.items()
        )
        worst = () if domain is None else ("rmse",)
        checksums = {} if self.synthetic else self.checksums
        return self.assemble(seed, splits, checksums, notes, preprocessing=preprocessing.to_json(), worst=worst)

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
        is_train = np.isin(np.arange(len(x)), train)
        width = x.shape[1] if x.ndim == 2 else 1
        low, high = np.full(width, np.inf), np.full(width, -np.inf)
        for start, block in chunks(x, f"{self._source}: x"):
            if len(block_rows := block[is_train[start : start + len(block)]].reshape(-1, width)):
                low, high = np.minimum(low, block_rows.min(axis=0)), np.maximum(high, block_rows.max(axis=0))
                scaler.partial_fit(block_rows)
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
    kind = None if hdf5 else by_start(start, OTHERS)
    try:
        if hdf5:
            import h5py

            arrays = dict[str, Any]()
            h5py.File(path).visititems(lambda name, item: arrays.update({name: item} if hasattr(item, "dtype") else {}))
            return _with_standard_names(arrays)
        content = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(content, np.ndarray):
            return {"x": content}
        if not any(name.endswith("data.pkl") for name in content.files):
            return _with_standard_names({name: content[name] for name in content.files})
        kind = "a file of torch.save"
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if "allow_pickle" in reason:  # NumPy's advice runs code of the file
            reason = "it is of another kind, or an array in it holds objects"
        if not kind or "NumPy" in kind:
            raise InputError(f"{word} {path} holds no arrays (.npz, .npy, .h5): {reason}") from None
    raise InputError(f"{word} {path} is {kind}; what can be read is .npz, .npy and HDF5: np.savez(path, x=x, y=y)")


def _with_standard_names(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return arrays as x and y where they are X and Y, arr_0 and arr_1, or of training and test in x_train, y_test.

    The latter, also called train_x or in a group train/x, become one, with their parts as `split`. A group that has a
    name alone is left out of it.
    """
    ends, by_name = [name.rpartition("/")[2] for name in arrays], dict[str, Any]()
    for name, end in zip(arrays, ends, strict=True):
        words = re.split("[/_]", name.lower())
        tags = [word for word in words if word in ("x", "y", *PARTS)]
        key = "_".join(sorted(tags, key=PARTS.__contains__)) if len(tags) > 1 else end if ends.count(end) == 1 else name
        by_name[name if key in by_name else key] = arrays[name]
    parts = [part for part in dict.fromkeys(PARTS) if {f"x_{part}", f"y_{part}"} <= {*by_name}]
    if parts and "x" not in map(str.lower, by_name):
        part_arrays = {part: tuple(np.asarray(by_name[f"{name}_{part}"]) for name in "xy") for part in parts}
        x, y = (np.concatenate(blocks) for blocks in zip(*part_arrays.values(), strict=True))
        split = {"split": np.repeat(parts, [len(pair[0]) for pair in part_arrays.values()])}
        return {"x": x, "y": y, **(split if len(parts) > 1 else {})}
    aliases = {"x": ("x", "X", "arr_0"), "y": ("y", "Y", "arr_1")}
    stored = {standard: next((name for name in names if name in by_name), "") for standard, names in aliases.items()}
    return {**by_name, **{standard: by_name[name] for standard, name in stored.items() if name}}
