"""Every reader with a small file of its own, and what must be true of what it reads."""

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cmixup.done import DONE, done_text
from cmixup.errors import InputError
from cmixup.saved_run import MODEL, PREPROCESSING, WEIGHTS, load_run
from cmixup.sklearn import CMixupRegressor
from datasets.airfoil import Airfoil
from datasets.common.affinity_matrix import strings
from datasets.common.base import RawTable
from datasets.common.damaged import read_numbers
from datasets.common.fetch import RawFile, fetch
from datasets.common.pose.meshes import Mesh, parse_obj, read_mat, read_objs
from datasets.common.pose.pickled import SIDE, read_pickle
from datasets.common.pose.views import read_views
from datasets.common.table.labels import file_labels
from datasets.common.video.avi import Avi, write_avi
from datasets.crime import Crime
from datasets.csv import Csv
from datasets.echo import read_listing
from datasets.exchange_rate import ExchangeRate
from datasets.no2 import CSV, NO2
from datasets.rcf_mnist import read_idx
from datasets.skillcraft import SkillCraft
from scripts.driver.predictions import read_predictions
from tests.robustness import samples as make
from tests.robustness.saved_runs import frame, make_run


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


def read_csv_table(path: Path) -> None:
    """Read a table of one's own and make a dataset of it."""
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"separator": ";", "decimal": "comma", "encoding": "latin1"},
        {"encoding": "utf-16"},
    )
    for options in ways:
        try:
            data = Csv(str(path), target="y", categorical="name", **options).load(0)
        except InputError:
            if options is ways[-1]:
                raise
            continue
        for part in (data.train, data.val, data.test):
            x: Any = part.x
            formed(x.shape[0] == len(part.y) and torch.isfinite(x).all(), "x of a table")
            formed(torch.isfinite(part.y).all() and part.y.shape[1] == 1, "y of a table")
        return


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


def check_meshes(*meshes: Mesh) -> None:
    """Check meshes."""
    for mesh in meshes:
        _check_mesh(mesh)


def _check_mesh(mesh: Mesh) -> None:
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
    """Load a run of which one file is damaged, but listed, and predict."""
    others = [each for each in path.parent.iterdir() if each.name != DONE]
    (path.parent / DONE).write_text(done_text(others))
    run = load_run(path.parent)
    try:
        found = run.predict(frame()) if run.table else run.predict(torch.zeros(2, *run.in_shape))
    except InputError:  # a name or a number of columns was changed: the table is what does not fit
        return
    formed(len(found) == (30 if run.table else 2), "predictions")


def run_file(name: str) -> bytes:
    """Return what a file of a right run holds."""
    return (make_run() / name).read_bytes()


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
    for name, text in make.ECHO.items():
        if name != path.name:
            (path.parent / name).write_text(text)


def read_echo(path: Path) -> None:
    """Read the tables of EchoNet-Dynamic."""
    for part in read_listing(path.parent).values():
        formed(len(part.paths) == len(part.fractions), "listing")
        formed(((part.fractions >= 0) & (part.fractions <= 100)).all(), "fractions")


def read_archive(path: Path) -> None:
    """Fetch a member of an archive whose checksum is known."""
    content = make.TABLE.encode()
    member = "#inner" if path.suffix == ".gz" else "#table.csv"
    file = RawFile("fetched/table.csv", hashlib.sha256(content).hexdigest(), len(content), (f"{path}{member}",), "", "")
    target = path.parent / file.path
    target.unlink(missing_ok=True)
    _, got = fetch(file, root=path.parent, mirror="")
    formed(got.read_bytes() == content, "fetched bytes")
    formed([each.name for each in target.parent.iterdir()] == ["table.csv"], "something is left behind")


def read_estimator(path: Path) -> None:
    """Read a regressor and predict."""
    found = CMixupRegressor.load(path).predict(np.zeros((2, 3)))
    formed(found.shape == (2,), f"predictions {found.shape}")


ALL = (
    Reader("table.csv", make.TABLE.encode, read_csv_table),
    Reader("labels.npy", lambda: make.npy(np.arange(20.0)), partial(read_labels, "")),
    Reader(
        "labels.csv",
        lambda: b"x,price\n" + b"".join(b"%d,%d.5\n" % (k, k) for k in range(20)),
        partial(read_labels, "price"),
    ),
    Reader("train.idx", make.sample_idx, lambda path: formed(read_idx(path, make.IDX).shape == make.IDX, "shape")),
    Reader(
        "train.idx.gz",
        lambda: gzip.compress(make.sample_idx(), mtime=0),
        lambda path: formed(read_idx(path, make.IDX).shape == make.IDX, "shape"),
    ),
    Reader(
        "views.npz",
        lambda: make.temporary(make.sample_views, "views.npz"),
        lambda path: formed(len(read_views(path).x) == 2, "x"),
    ),
    Reader("views.pkl", make.sample_pickle, read_pickled),
    Reader("boat.mat", make.sample_mat, lambda path: check_meshes(*read_mat(path))),
    Reader(
        "mesh.obj",
        make.OBJ.encode,
        lambda path: check_meshes(parse_obj(path.read_bytes().decode("ascii", "replace"), "mesh")),
    ),
    Reader("meshes.tar.xz", make.sample_tar, lambda path: check_meshes(*read_objs(path, ["m/a.obj", "m/b.obj"]))),
    Reader(
        "video.avi",
        lambda: make.temporary(
            lambda path: write_avi(path, np.arange(3 * 8 * 8 * 3, dtype=np.uint8).reshape(3, 8, 8, 3)), "video.avi"
        ),
        read_avi,
    ),
    Reader("FileList.csv", make.ECHO["FileList.csv"].encode, read_echo, echo_beside),
    Reader("VolumeTracings.csv", make.ECHO["VolumeTracings.csv"].encode, read_echo, echo_beside),
    Reader(
        "ligands.json",
        lambda: json.dumps({"a": "CCO", "b": "C1=CC"}).encode(),
        lambda path: formed(all(isinstance(v, str) for v in strings(path).values()), "strings"),
    ),
    Reader("airfoil.dat", lambda: make.numbers(20, 6, "\t"), partial(read_dataset, Airfoil, 20)),
    Reader("no2.csv", lambda: make.numbers(20, 8, ",", "a,b,c,d,e,f,g,h\n"), partial(read_dataset, NO2, 20)),
    Reader(
        "communities.data",
        lambda: make.numbers(12, 128, ",").replace(b".", b"").replace(b"7,", b"7,?,", 1).replace(b"9,", b"", 1),
        partial(read_dataset, Crime, 12),
    ),
    Reader("SkillCraft1.csv", make.skillcraft, partial(read_dataset, SkillCraft, 12)),
    Reader(
        "exchange_rate.txt.gz",
        lambda: gzip.compress(make.numbers(320, 8, ","), mtime=0),
        partial(read_dataset, ExchangeRate, 320),
    ),
    Reader("matrix.txt", lambda: make.numbers(5, 4, " "), lambda path: formed(read_numbers(path).ndim == 2, "matrix")),
    Reader(WEIGHTS, partial(run_file, WEIGHTS), read_run, run_beside),
    Reader(MODEL, partial(run_file, MODEL), read_run, run_beside),
    Reader(PREPROCESSING, partial(run_file, PREPROCESSING), read_run, run_beside),
    Reader("model.npz", make.sample_estimator, read_estimator),
    Reader("archive.zip", make.sample_zip, read_archive),
    Reader("archive.gz", lambda: gzip.compress(make.TABLE.encode(), mtime=0), read_archive),
    Reader(
        "predictions.h5",
        lambda: make.temporary(make.sample_predictions, "predictions.h5"),
        lambda path: formed(isinstance(read_predictions(path), dict), "predictions"),
    ),
)
READERS = {reader.name: reader for reader in ALL}
