"""Files and names as users have them are found, or said to be what they are."""

from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from cmixup.errors import InputError
from cmixup.inputs.images import list_images, read_image
from cmixup.tables.columns import checked_columns
from datasets.arrays import Arrays
from datasets.common.table.image_table import read_image_table
from datasets.csv import Csv
from datasets.images import Images

X = np.arange(60.0).reshape(30, 2) ** 2
Y = np.arange(30.0)


def photos(folder: Path, *names: str) -> Path:
    for k, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4), 9 * k, np.uint8)).save(folder / name)
    return folder


def test_images_below_links_are_found_once_and_no_loop_is_walked(tmp_path: Path) -> None:
    photos(tmp_path / "store" / "b", "0.png", "deep/1.png")
    folder = photos(tmp_path / "photos", "2.png")
    (folder / "a").symlink_to(tmp_path / "store" / "b")
    (tmp_path / "store" / "b" / "up").symlink_to(tmp_path / "store")
    (folder / "me").symlink_to(folder)
    paths = [path.relative_to(folder).as_posix() for path in list_images(folder)]
    assert paths == ["2.png", "a/0.png", "a/deep/1.png"]


def test_images_are_found_by_path_or_name_with_or_without_ending_in_any_case(tmp_path: Path) -> None:
    names = {
        "0.png": "0.png", "b/1.jpg": "b/1.jpg", "photos/2.tiff": "2.tiff", "b/3": "b/3.png", "./4.bmp": "4.bmp",
        "b\\5.png": "b/5.png", str(tmp_path / "photos/6.jpg"): "6.jpg", "IMG_0.PNG": "IMG_0.png",
        "a/IMG_1.png": "a/IMG_1.PNG", "gro\u0308\u00dfe\u200b.png": "gr\u00f6\u00dfe.png", "two.PNG": "two.PNG",
        "two.png": "two.png",
    }  # fmt: skip
    folder = photos(tmp_path / "photos", *names.values(), "other.png")
    pd.DataFrame({"n": range(len(names)), "where": [*names]}).to_csv(tmp_path / "l.csv", index=False)
    table = read_image_table(tmp_path / "l.csv", folder)
    assert [file.relative_to(folder).as_posix() for file in table.files if file] == [*names.values()]
    assert (table.column, table.wrong, table.unlabelled) == ("where", {}, 1)
    pd.DataFrame({"n": range(len(names) + 1), "where": ["two.Png", *names]}).to_csv(tmp_path / "l.csv", index=False)
    assert "2 images are called 'two.Png'" in read_image_table(tmp_path / "l.csv", folder).wrong[0]


def test_numbers_of_rows_are_no_names_of_images(tmp_path: Path) -> None:
    """As the index is that pandas writes first; a real doubt is one line."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for k in range(6):
        Image.new("L", (4, 4)).save(folder / f"{k}.png")
    table = pd.DataFrame({"file": ["5.png", "3.png", "1.png"], "twin": [5, 3, 1], "angle": [7, 8, 9]})
    table.drop(columns="twin").to_csv(tmp_path / "l.csv")
    images = read_image_table(tmp_path / "l.csv", folder)
    assert (images.column, [file.name for file in images.files if file]) == ("file", ["5.png", "3.png", "1.png"])
    table.assign(file=[0, 1, 2]).to_csv(tmp_path / "l.csv", index=False)
    with pytest.raises(InputError, match=r"columns file and twin both name images: dataset.image= says which is meant"):
        read_image_table(tmp_path / "l.csv", folder)
    pd.DataFrame({"file": ["5.png", "3.png"] * 3, "row": range(6)}).to_csv(tmp_path / "l.csv", index=False)
    assert read_image_table(tmp_path / "l.csv", folder).column == "file"  # whose images have several rows
    photos(tmp_path, "two/a/0.png", "two/a/1.png", "two/b/0.png", "two/b/1.png")
    pd.DataFrame({"name": ["0.png", "1.png"], "path": ["a/0.png", "a/1.png"]}).to_csv(tmp_path / "l.csv", index=False)
    assert read_image_table(tmp_path / "l.csv", tmp_path / "two").column == "path"
    for columns in ({"name": [0, 1], "y": [7, 8]}, {"y": [7, 8], "name": [0, 1]}):
        pd.DataFrame(columns).to_csv(tmp_path / "l.csv", index=False)
        assert "2 images are called '0'" in read_image_table(tmp_path / "l.csv", tmp_path / "two").wrong[0]


def test_whole_numbers_of_a_column_with_gaps_name_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = photos(tmp_path / "photos", "0.png", "1.png")
    (tmp_path / "l.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(pd, "read_parquet", lambda _: pd.DataFrame({"name": [1, None, 0], "y": [1.5, 2.5, 3.5]}))
    files = read_image_table(tmp_path / "l.parquet", folder).files
    assert [file and file.name for file in files] == ["1.png", None, "0.png"]


def test_several_rows_of_an_image_and_one_too_large_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = photos(tmp_path / "photos", *(f"{k}.png" for k in range(8)))
    pd.DataFrame({"file": [f"{k % 8}.png" for k in range(16)], "y": range(16)}).to_csv(tmp_path / "l.csv", index=False)
    with pytest.raises(
        InputError, match=r"is the image of row 1, too: frame.groupby\('file', as_index=False\).mean\(\)"
    ):
        Images(str(folder), labels=str(tmp_path / "l.csv"), target="y", size=4).load(0)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 7)
    with pytest.raises(InputError, match="cannot be read as an image: it has more pixels than Pillow takes, 14: save"):
        read_image(folder / "0.png", 4)


@pytest.mark.parametrize(
    "name", ["gro\u0308\u00dfe", "gr\u00f6\u200b\u00dfe", "\ufeffgr\u00f6\u00dfe", "gr\u00f6\u00ad\u00dfe"]
)
def test_columns_are_found_by_names_that_look_the_same(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({name: np.arange(30) % 7, "y": Y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = Csv(str(tmp_path / "t.csv"), target="gr\u00f6\u00dfe")
    assert data.table.y[:, 0].tolist() == frame[name].tolist()
    assert list(checked_columns(frame, ["gr\u00f6\u00dfe"], "t")) == ["gr\u00f6\u00dfe", "y"]


@pytest.mark.parametrize(
    "words",
    [
        [f"{k}.5k" if k % 2 else f"{k}M" for k in range(30)], [f"{k} kg" if k % 2 else f"{k} g" for k in range(30)],
        [f'="{k}.5"' for k in range(30)], [f"<{k}.1" for k in range(30)], [f"~{k}" for k in range(30)],
        [f"{k}.5+-0.1" for k in range(30)], [f"{k}-{k + 1}" for k in range(30)], [f"{k}.4*" for k in range(30)],
        [f"{k}/7" for k in range(30)], [f"{k} x {k + 1}" for k in range(30)], [f"{k}\u00d710^3" for k in range(30)],
    ],
)  # fmt: skip
def test_a_column_of_nearly_numbers_is_counted_and_shown(words: list[str], tmp_path: Path) -> None:
    pd.DataFrame({"a": words, "b": X[:, 0], "y": Y}).to_csv(tmp_path / "t.csv", index=False)
    try:
        message = " ".join(Csv(str(tmp_path / "t.csv"), target="y").problems())
    except InputError as error:  # refused by the cell
        message = f"a: of 30 {error}"
    assert "a: " in message
    assert words[0] in message.replace('\\"', '"') or "read as numbers: a" in message


def test_codes_are_nothing_like_numbers(tmp_path: Path) -> None:
    codes = pd.DataFrame({"a": [f"s{k}" for k in range(30)], "b": X[:, 0], "y": Y})
    codes.to_csv(tmp_path / "t.csv", index=False)
    assert not any("no numbers" in line for line in Csv(str(tmp_path / "t.csv"), target="y").problems())


def test_arrays_are_found_by_their_usual_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "0.npz", x=X, y=Y)
    np.savez(tmp_path / "1.npz", X=X, Y=Y)
    np.savez(tmp_path / "2.npz", X, Y)
    with h5py.File(tmp_path / "3.mat", "w") as file:  # whatever its ending is
        file["X"], file["y"] = X, Y
    with h5py.File(tmp_path / "5.h5", "w") as file:  # in groups
        file["data/a/x"], file["data/y"], file["other/y2"] = X, Y, Y
    expected = Arrays(str(tmp_path / "0.npz")).load(0)
    np.savez(tmp_path / "8.npz", X_train=X, y_train=Y)  # alone: nothing is split yet
    for name in ("1.npz", "2.npz", "3.mat", "5.h5", "8.npz"):
        data = Arrays(str(tmp_path / name)).load(0)
        assert torch.equal(data.train.x[torch.arange(18)], expected.train.x[torch.arange(18)])
    np.savez(tmp_path / "4.npz", x_train=X[:20], y_train=Y[:20], X_test=X[20:], y_test=Y[20:])
    with h5py.File(tmp_path / "6.h5", "w") as file:
        file["train/x"], file["train/y"], file["test/x"], file["test/y"] = X[:20], Y[:20], X[20:], Y[20:]
    for name in ("4.npz", "6.h5"):
        data = Arrays(str(tmp_path / name)).load(0)
        assert data.test.y[:, 0].tolist() == Y[20:].tolist()
        assert len(data.train) + len(data.val) == 20
    with h5py.File(tmp_path / "7.h5", "w") as file:
        file["a/x"], file["b/x"], file["b/y"] = X, X, Y
    with pytest.raises(InputError, match="has no array x; there are a/x, b/x, y"):
        Arrays(str(tmp_path / "7.h5")).load(0)


def test_labels_of_arrays_may_have_gaps(tmp_path: Path) -> None:
    y = np.column_stack([Y, Y**2])
    y[::3, 1] = np.nan
    y[6] = np.nan
    np.savez(tmp_path / "a.npz", x=X, y=y)
    data = Arrays(str(tmp_path / "a.npz")).load(0)
    labels = torch.cat([data.train.y, data.val.y, data.test.y])
    assert (len(labels), int(labels.isnan().sum())) == (29, 9)
    assert "1 of 30 rows have no label and are left out" in data.notes
