"""What right files of every kind hold, all of them small."""

import io
import lzma
import pickle
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.sklearn import CMixupRegressor
from datasets.common.pose.pickled import SIDE
from datasets.common.pose.views import Views, write_views
from datasets.skillcraft import SkillCraft
from scripts.driver.predictions import Scored, write_predictions

IDX = (3, 4, 4)
TABLE = 'a;b;name;"a long; name";y\n' + "".join(
    f"{k},5;{k * k};{'xyz'[k % 3]};{'' if k % 7 == 0 else f'{k / 3:.3f}'};{(k * 7919) % 101 / 10}\n" for k in range(30)
)
OBJ = (
    "# cube\n"
    + "".join(f"v {a} {b} {c}\n" for a in "01" for b in "01" for c in "01")
    + "f 1 2 3 4\nf 1/1 2/2 6/3\nf -1 -2 -3\n"
)


ECHO = {
    "FileList.csv": "FileName,EF,Split\n"
    + "".join(f"v{k},{50 + k}.5,{('TRAIN', 'VAL', 'TEST')[k % 3]}\n" for k in range(6)),
    "VolumeTracings.csv": "FileName,X1,Y1,X2,Y2,Frame\n"
    + "".join(f"v{k}.avi,1,2,3,4,{frame}\n" for k in range(6) for frame in (3, 9)),
}


def written(write: Callable[[Path], Any], folder: Path, name: str) -> bytes:
    """Return what a function writes into a file."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / name)
    return (folder / name).read_bytes()


def sample_estimator() -> bytes:
    """Return a fitted regressor as it is saved."""
    rng = np.random.default_rng(0)
    model = CMixupRegressor(hidden_layer_sizes=(4,), epochs=2, random_state=0)
    model.fit(rng.normal(size=(20, 3)), rng.normal(size=20))
    with tempfile.TemporaryDirectory() as folder:
        return written(model.save, Path(folder), "model.npz")


def temporary(write: Callable[[Path], Any], name: str) -> bytes:
    """Return what a function writes into a file of a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        return written(write, Path(folder), name)


def sample_mat() -> bytes:
    """Return two meshes as PASCAL3D+ has them."""
    from scipy.io import savemat

    models = np.zeros(2, dtype=[("vertices", object), ("faces", object)])
    for k in range(2):
        models[k] = (np.random.default_rng(k).random((6, 3)), np.array([[1, 2, 3], [4, 5, 6]], np.float64))
    stream = io.BytesIO()
    savemat(stream, {"boat": models}, do_compression=True)
    return stream.getvalue()


def sample_tar() -> bytes:
    """Return two meshes in a tar.xz."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in ("m/a.obj", "m/b.obj"):
            info = tarfile.TarInfo(name)
            info.size = len(OBJ)
            archive.addfile(info, io.BytesIO(OBJ.encode()))
    return lzma.compress(stream.getvalue())


def sample_zip() -> bytes:
    """Return a table in a zip."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("table.csv"), TABLE, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def sample_idx() -> bytes:
    """Return images in the format idx."""
    return bytes([0, 0, 8, len(IDX)]) + np.array(IDX, ">u4").tobytes() + bytes(range(48))


def sample_pickle() -> bytes:
    """Return views as a released pickle."""
    x = np.random.default_rng(0).integers(0, 255, (1, 2, SIDE, SIDE), dtype=np.uint8)
    return pickle.dumps((x, np.full((1, 2, 3), 0.25, np.float32)), protocol=2)


def sample_views(path: Path) -> None:
    """Write views."""
    x = np.random.default_rng(0).integers(0, 255, (2, 3, 4, 4), dtype=np.uint8)
    write_views(path, Views(x, np.full((2, 3), 0.5, np.float32), ("a", "b"), {"sources": {"f": "0"}}))


def sample_predictions(path: Path) -> None:
    """Write predictions of two seeds."""
    one = Scored({"": np.ones((4, 1), np.float32)}, np.zeros((4, 1), np.float32), np.arange(4))
    write_predictions(path, {0: {"val": one, "test": one}, 1: {"val": one, "test": one}})


def npy(values: np.ndarray) -> bytes:
    """Return an array as a file."""
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def numbers(n: int, d: int, separator: str, head: str = "") -> bytes:
    """Return a text of numbers."""
    rows = np.random.default_rng(0).integers(1, 999, (n, d)) / 8
    return (head + "".join(separator.join(map(str, row)) + "\n" for row in rows.tolist())).encode()


def skillcraft() -> bytes:
    """Return rows as SkillCraft1 has them."""
    names = ["GameID", "LeagueIndex", "Age", "HoursPerWeek", "TotalHours", *SkillCraft.columns]
    names = list(dict.fromkeys(["GameID", "LeagueIndex", *SkillCraft.columns, SkillCraft.label]))
    rows = [[str(k + 1), str(1 + k % 8), *[str(k + c) for c in range(len(names) - 2)]] for k in range(12)]
    rows[3][4] = "?"
    return "\n".join(",".join(row) for row in [names, *rows]).encode() + b"\n"
