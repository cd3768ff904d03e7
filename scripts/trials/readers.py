"""Every reader with a small file of its own, and what must be true of what it reads."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cmixup.saved_run import MODEL, PREPROCESSING, WEIGHTS, load_run
from datasets.airfoil import Airfoil
from datasets.common.affinity_matrix import strings
from datasets.common.base import RawTable
from datasets.common.damaged import read_numbers
from datasets.common.fetch import RawFile, fetch
from datasets.common.pose.meshes import Mesh, parse_obj, read_mat, read_objs
from datasets.common.pose.pickled import SIDE, read_pickle
from datasets.common.pose.views import read_views, write_views
from datasets.common.table.labels import file_labels
from datasets.common.video.avi import Avi, write_avi
from datasets.crime import Crime
from datasets.csv import Csv
from datasets.echo import read_listing
from datasets.exchange_rate import ExchangeRate
from datasets.no2 import CSV, NO2
from datasets.rcf_mnist import read_idx
from datasets.skillcraft import SkillCraft
from scripts.driver.predictions import Scored, read_predictions, write_predictions
from scripts.trials.saved_runs import frame, make_run

IDX = (3, 4, 4)
TABLE = 'a;b;name;"a long; name";y\n' + "".join(
    f"{k},5;{k * k};{'xyz'[k % 3]};{'' if k % 7 == 0 else f'{k / 3:.3f}'};{(k * 7919) % 101 / 10}\n" for k in range(30)
)
OBJ = "# cube\n" + "".join(f"v {a} {b} {c}\n" for a in "01" for b in "01" for c in "01") + "f 1 2 3 4\nf 1/1 2/2 6/3\nf -1 -2 -3\n"


@dataclass(frozen=True)
class Reader:
    """A reader of files.

    Attributes:
        name: the file's name.
        sample: makes what a right file holds.
        read: reads a file and raises `AssertionError` where what it returns is not well formed.
        beside: other files of the folder, by name.
    """

    name: str
    sample: Callable[[], bytes]
    read: Callable[[Path], Any]
    beside: Callable[[Path], None] | None = None


def formed(true: object, what: str) -> None:
    """Raise `AssertionError` unless something is true."""
    if not true:
        raise AssertionError(f"what was read is not well formed: {what}")


def written(write: Callable[[Path], Any], folder: Path, name: str) -> bytes:
    """Return what a function writes into a file."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / name)
    return (folder / name).read_bytes()


def read_csv_table(path: Path) -> None:
    """Read a table of one's own and make a dataset of it."""
    for options in ({}, {"separator": ";", "decimal": "comma", "encoding": "latin1"}, {"encoding": "utf-16"}):
        first = None
        try:
            data = Csv(str(path), target="y", categorical="name", **options).load(0)
        except Exception as error:  # the last of them is raised below
            first = error
        else:
            for part in (data.train, data.val, data.test):
                formed(part.x.shape[0] == len(part.y) and torch.isfinite(part.x).all(), "x of a table")
                formed(torch.isfinite(part.y).all() and part.y.shape[1] == 1, "y of a table")
            return
        from cmixup.errors import InputError

        if not isinstance(first, InputError):
            raise first
    raise first


def read_dataset(kind: type, rows: int, path: Path) -> None:
    """Read the file of a dataset as its class does behind the checksum."""
    small = type(kind.__name__, (kind,), {"rows": rows, "fetch": lambda _: [(CSV, path)]})()
    found = small.read()
    if isinstance(found, RawTable):
        n = len(found.x)
        formed(found.x.ndim == 2 and found.y.shape == (n, 1) and found.domain.shape == (n,), f"table {found.x.shape}")
    else:
        formed(found[0].ndim == 2, f"series {found[0].shape}")


def read_labels(column: str, path: Path) -> None:
    """Read labels for the bandwidth doctor."""
    found = file_labels(path, column)
    formed(found.dtype == np.float64, f"labels {found.dtype}")


def check_mesh(mesh: Mesh) -> None:
    """Check a mesh."""
    formed(mesh.vertices.shape[1:] == (3,) and mesh.faces.shape[1:] == (3,), f"mesh {mesh.vertices.shape}")
    formed(np.isfinite(mesh.vertices).all() and mesh.faces.max() < len(mesh.vertices), "mesh")


def read_avi(path: Path) -> None:
    """Read all frames of a video."""
    video = Avi(path)
    formed(len(video) > 0, "no frames")
    frames = video.read(range(min(len(video), 20)))
    formed(frames.ndim == 4 and frames.shape[3] == 3 and frames.dtype == np.uint8, f"frames {frames.shape}")


def read_pickled(path: Path) -> None:
    """Read a released pickle."""
    with path.open("rb") as stream:
        x, y = read_pickle(stream, path.name)
    formed(x.shape == (*y.shape, SIDE, SIDE) and x.dtype == np.uint8 and y.dtype == np.float32, f"{x.shape}")


def read_run(path: Path) -> None:
    """Load a run of which one file is damaged, and predict."""
    run = load_run(path.parent)
    found = run.predict(frame()) if run.table else run.predict(torch.zeros(2, *run.in_shape))
    formed(len(found) == (30 if run.table else 2), "predictions")


def run_beside(path: Path) -> None:
    """Put the other files of a run beside one."""
    for each in make_run().iterdir():
        if each.name != path.name:
            (path.parent / each.name).write_bytes(each.read_bytes())


def echo_beside(path: Path) -> None:
    """Put the other files of EchoNet-Dynamic beside one of its tables."""
    (path.parent / "Videos").mkdir(exist_ok=True)
    for k in range(6):
        (path.parent / "Videos" / f"v{k}.avi").write_bytes(b"")
    for name, text in ECHO.items():
        if name != path.name:
            (path.parent / name).write_text(text)


def read_echo(path: Path) -> None:
    """Read the tables of EchoNet-Dynamic."""
    for part in read_listing(path.parent).values():
        formed(len(part.paths) == len(part.fractions), "listing")
        formed(((part.fractions >= 0) & (part.fractions <= 100)).all(), "fractions")


ECHO = {
    "FileList.csv": "FileName,EF,Split\n" + "".join(f"v{k},{50 + k}.5,{('TRAIN', 'VAL', 'TEST')[k % 3]}\n" for k in range(6)),
    "VolumeTracings.csv": "FileName,X1,Y1,X2,Y2,Frame\n"
    + "".join(f"v{k}.avi,1,2,3,4,{frame}\n" for k in range(6) for frame in (3, 9)),
}  # fmt: skip


def read_archive(path: Path) -> None:
    """Fetch a member of an archive whose checksum is known."""
    content = TABLE.encode()
    member = "#inner" if path.suffix == ".gz" else "#table.csv"
    file = RawFile("fetched/table.csv", hashlib.sha256(content).hexdigest(), len(content), (f"{path}{member}",), "", "")
    target = path.parent / file.path
    target.unlink(missing_ok=True)
    _, got = fetch(file, root=path.parent, mirror="")
    formed(got.read_bytes() == content, "fetched bytes")
    formed([each.name for each in target.parent.iterdir()] == ["table.csv"], "something is left behind")


def read_estimator(path: Path) -> None:
    """Read a regressor and predict."""
    from cmixup.sklearn import CMixupRegressor

    found = CMixupRegressor.load(path).predict(np.zeros((2, 3)))
    formed(found.shape == (2,), f"predictions {found.shape}")


def sample_estimator() -> bytes:
    """Return a fitted regressor as it is saved."""
    import tempfile

    from cmixup.sklearn import CMixupRegressor

    rng = np.random.default_rng(0)
    model = CMixupRegressor(hidden_layer_sizes=(4,), epochs=2, random_state=0)
    model.fit(rng.normal(size=(20, 3)), rng.normal(size=20))
    with tempfile.TemporaryDirectory() as folder:
        return written(model.save, Path(folder), "model.npz")


def temporary(write: Callable[[Path], Any], name: str) -> bytes:
    """Return what a function writes into a file of a temporary folder."""
    import tempfile

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
        archive.writestr("table.csv", TABLE)
    return stream.getvalue()


def sample_idx() -> bytes:
    """Return images in the format idx."""
    return bytes([0, 0, 8, len(IDX)]) + np.array(IDX, ">u4").tobytes() + bytes(range(48))


def sample_pickle() -> bytes:
    """Return views as a released pickle."""
    x = np.random.default_rng(0).integers(0, 255, (1, 2, SIDE, SIDE), dtype=np.uint8)
    return pickle.dumps((x, np.full((1, 2, 3), 0.25, np.float32)), protocol=2)


def sample_views(path: Path) -> None:
    """Write views and their checksum."""
    x = np.random.default_rng(0).integers(0, 255, (2, 3, 4, 4), dtype=np.uint8)
    write_views(path, iter(x), np.full((2, 3), 0.5), ["a", "b"], {"sources": {"f": "0"}})


def views_beside(path: Path) -> None:
    """Put the checksum of the right file beside a damaged one."""
    (path.parent / f"{path.name}.sha256").write_text(hashlib.sha256(READERS["views.h5"].sample()).hexdigest())


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


ALL = (
    Reader("table.csv", TABLE.encode, read_csv_table),
    Reader("labels.npy", lambda: npy(np.arange(20.0)), partial(read_labels, "")),
    Reader("labels.csv", lambda: b"x,price\n" + b"".join(b"%d,%d.5\n" % (k, k) for k in range(20)), partial(read_labels, "price")),
    Reader("train.idx", sample_idx, lambda path: formed(read_idx(path, IDX).shape == IDX, "shape")),
    Reader("train.idx.gz", lambda: gzip.compress(sample_idx()), lambda path: formed(read_idx(path, IDX).shape == IDX, "shape")),
    Reader("views.h5", lambda: temporary(sample_views, "views.h5"), lambda path: formed(len(read_views(path).x) == 2, "x"),
           views_beside),
    Reader("views.pkl", sample_pickle, read_pickled),
    Reader("boat.mat", sample_mat, lambda path: [check_mesh(mesh) for mesh in read_mat(path)]),
    Reader("mesh.obj", OBJ.encode, lambda path: check_mesh(parse_obj(path.read_bytes().decode("ascii", "replace"), "mesh"))),
    Reader("meshes.tar.xz", sample_tar, lambda path: [check_mesh(mesh) for mesh in read_objs(path, ["m/a.obj", "m/b.obj"])]),
    Reader("video.avi", lambda: temporary(lambda path: write_avi(path, np.arange(3 * 8 * 8 * 3, dtype=np.uint8).reshape(3, 8, 8, 3)),
                                          "video.avi"), read_avi),
    Reader("FileList.csv", ECHO["FileList.csv"].encode, read_echo, echo_beside),
    Reader("VolumeTracings.csv", ECHO["VolumeTracings.csv"].encode, read_echo, echo_beside),
    Reader("ligands.json", lambda: json.dumps({"a": "CCO", "b": "C1=CC"}).encode(),
           lambda path: formed(all(isinstance(v, str) for v in strings(path).values()), "strings")),
    Reader("airfoil.dat", lambda: numbers(20, 6, "\t"), partial(read_dataset, Airfoil, 20)),
    Reader("no2.csv", lambda: numbers(20, 8, ",", "a,b,c,d,e,f,g,h\n"), partial(read_dataset, NO2, 20)),
    Reader("communities.data", lambda: numbers(12, 128, ",").replace(b".", b"").replace(b"7,", b"7,?,", 1).replace(b"9,", b"", 1),
           partial(read_dataset, Crime, 12)),
    Reader("SkillCraft1.csv", skillcraft, partial(read_dataset, SkillCraft, 12)),
    Reader("exchange_rate.txt.gz", lambda: gzip.compress(numbers(320, 8, ",")), partial(read_dataset, ExchangeRate, 320)),
    Reader("matrix.txt", lambda: numbers(5, 4, " "), lambda path: formed(read_numbers(path).ndim == 2, "matrix")),
    Reader(WEIGHTS, lambda: (make_run() / WEIGHTS).read_bytes(), read_run, run_beside),
    Reader(MODEL, lambda: (make_run() / MODEL).read_bytes(), read_run, run_beside),
    Reader(PREPROCESSING, lambda: (make_run() / PREPROCESSING).read_bytes(), read_run, run_beside),
    Reader("model.npz", sample_estimator, read_estimator),
    Reader("archive.zip", sample_zip, read_archive),
    Reader("archive.gz", lambda: gzip.compress(TABLE.encode()), read_archive),
    Reader("predictions.h5", lambda: temporary(sample_predictions, "predictions.h5"),
           lambda path: formed(isinstance(read_predictions(path), dict), "predictions")),
)  # fmt: skip
READERS = {reader.name: reader for reader in ALL}
