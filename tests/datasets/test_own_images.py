"""A folder of images and a table of labels: what is read by which rule, and the one line that says what cannot be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from cmixup.errors import InputError
from cmixup.inputs.images import IMAGENET, ImageFiles, ImagePreprocessing, ImageRows, read_image
from datasets.images import Images

N = 24
DIGITS = [(digit * 15).astype(np.uint8) for digit in load_digits().images[:N]]  # 8 x 8, grey
COLOURED = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
ENDINGS = ("png", "jpg", "tiff", "webp", "bmp")


def folder_of(place: Path, **columns: list) -> dict[str, Any]:
    """Write digits in files of several formats, half of them in a folder below, and a table; return the options."""
    photos = place / "photos"
    (photos / "b").mkdir(parents=True)
    for k, digit in enumerate(DIGITS):
        Image.fromarray(digit).save(photos / ("b" * (k % 2)) / f"{k:03d}.{ENDINGS[k % len(ENDINGS)]}")
    frame = pd.DataFrame({"picture": [f"{k:03d}" for k in range(N)], "ink": [int(d.sum()) for d in DIGITS], **columns})
    frame.to_csv(place / "labels.csv", index=False)
    return {"path": str(photos), "labels": str(place / "labels.csv"), "target": "ink", "size": 8}


def saved(path: Path, image: Image.Image, **how: Any) -> Path:
    image.save(path, **how)
    return path


def test_an_image_is_read_alike_from_every_format(tmp_path: Path) -> None:
    grey, colour = Image.fromarray(DIGITS[0]), Image.fromarray(COLOURED)
    for image, expected in ((grey, np.stack([DIGITS[0]] * 3)), (colour, COLOURED.transpose(2, 0, 1))):
        for ending, how in (("png", {}), ("tiff", {}), ("bmp", {}), ("webp", {"lossless": True})):
            np.testing.assert_array_equal(read_image(saved(tmp_path / f"a.{ending}", image, **how), 8), expected)
    exact = read_image(saved(tmp_path / "a.jpg", grey, quality=100), 8).astype(int) - DIGITS[0]
    assert np.abs(exact).max() <= 3
    cmyk = read_image(saved(tmp_path / "c.tiff", colour.convert("CMYK")), 8).astype(int)
    assert np.abs(cmyk - COLOURED.transpose(2, 0, 1)).max() <= 2


def test_sixteen_bits_stay_where_they_are_asked_for(tmp_path: Path) -> None:
    values = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    for ending in ("png", "tiff"):
        path = saved(tmp_path / f"a.{ending}", Image.fromarray(values))
        np.testing.assert_array_equal(read_image(path, 8, deep=True), np.stack([values] * 3))
        np.testing.assert_array_equal(read_image(path, 8), np.stack([np.rint(values / 257)] * 3))
    rows = ImageRows(ImageFiles([path], 8, deep=True), torch.zeros(1, dtype=torch.int64), *IMAGENET)
    np.testing.assert_array_equal(rows.pictures(torch.tensor([0]))[0, :, :, 0], np.rint(values / 257))
    eight = saved(tmp_path / "b.png", Image.fromarray(DIGITS[0]))
    np.testing.assert_array_equal(read_image(eight, 8, deep=True)[0], DIGITS[0].astype(int) * 257)


def test_a_rotation_in_the_file_is_done_and_what_is_transparent_is_white(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees, clockwise
    turned = read_image(saved(tmp_path / "a.png", Image.fromarray(DIGITS[0]), exif=exif), 8)
    np.testing.assert_array_equal(turned[0], np.rot90(DIGITS[0], -1))
    clear = np.dstack([COLOURED, np.where(np.arange(8) < 4, 255, 0)[None].repeat(8, 0).astype(np.uint8)])
    pixels = read_image(saved(tmp_path / "b.png", Image.fromarray(clear)), 8)
    np.testing.assert_array_equal(pixels[:, :, :4], COLOURED.transpose(2, 0, 1)[:, :, :4])
    assert (pixels[:, :, 4:] == 255).all()


def test_the_shorter_side_becomes_the_size_and_the_centre_stays(tmp_path: Path) -> None:
    wide = np.repeat(np.arange(24, dtype=np.uint8) * 10, 16)[None].repeat(128, 0)  # 128 x 384: a step every 16 pixels
    pixels = read_image(saved(tmp_path / "a.png", Image.fromarray(wide)), 8)
    np.testing.assert_array_equal(pixels[0], np.arange(8, 16)[None].repeat(8, 0) * 10)
    close = read_image(saved(tmp_path / "a.jpg", Image.fromarray(wide), quality=100), 8).astype(int)
    assert np.abs(close - pixels).max() <= 6  # decoded at a smaller size


def test_splits_labels_and_pixels_are_those_of_the_files(tmp_path: Path) -> None:
    dataset = Images(**(options := folder_of(tmp_path)))
    data = dataset.load(3)
    assert [len(part) for part in (data.train, data.val, data.test)] == [14, 5, 5]
    shift, scale = data.train.x._shift, data.train.x._scale
    x = torch.cat([part.x[torch.arange(len(part))] for part in (data.train, data.val, data.test)])
    ink = (x.add(shift) / scale).mean(dim=1).sum(dim=(1, 2))  # the label is the sum of the pixels
    y = torch.cat([data.train.y, data.val.y, data.test.y])[:, 0]
    assert ((ink - y).abs() / y).max() < 0.05  # of JPEG and WebP
    train = data.train.x[torch.arange(14)]
    torch.testing.assert_close(train.mean(dim=(0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(train.square().mean(dim=(0, 2, 3)), torch.ones(3), atol=1e-4, rtol=0)
    assert dataset.problems() == ("24 images of 8 x 8 pixels are kept in memory: 4.61e-06 GB of 4 GB (dataset.memory)",)
    assert sorted(data.checksums) == ["labels.csv", "photos/ (names and sizes)"]
    kept, read, index = data.train.x, Images(**options, memory=1e-9).load(3).train.x, torch.tensor([3, 0, 3])
    assert (kept.workers, kept.files.kept is None, read.files.kept) == (0, False, None)
    assert torch.equal(kept[index], read[index])  # from memory and from files


def test_groups_stay_together_and_a_column_names_the_parts(tmp_path: Path) -> None:
    who = [f"p{k % 6}" for k in range(N)]
    words = ["Training"] * 12 + ["valid"] * 4 + ["test"] * 8
    options = folder_of(tmp_path, patient=who, part=words)
    data = Images(**options, group="patient").load(0)
    domains = [set(part.domain.tolist()) for part in (data.train, data.val, data.test)]
    assert sum(map(len, domains)) == len(set.union(*domains)) == 6
    data = Images(**options, split="part").load(5)
    assert [len(part) for part in (data.train, data.val, data.test)] == [12, 4, 8]
    assert data.test.y[:, 0].tolist() == [float(d.sum()) for d in DIGITS[16:]]
    ink = [np.nan, *(int(digit.sum()) for digit in DIGITS[1:])]
    options = folder_of(tmp_path / "other", ink=ink, part=[*words[:-1], "tst"])
    with pytest.raises(InputError, match="row 24: the part must be train, val or test, got 'tst'"):
        Images(**options, split="part").load(0)


def test_several_targets_may_have_gaps_and_rows_without_any_are_left_out(tmp_path: Path) -> None:
    ink = [np.nan, *(int(digit.sum()) for digit in DIGITS[1:])]
    options = folder_of(tmp_path, ink=ink, eye=[np.nan] * 6 + [*range(6, N)]) | {"target": ["ink", "eye"]}
    data = Images(**options).load(0)
    y = torch.cat([part.y for part in (data.train, data.val, data.test)])
    assert y.isnan().sum(dim=0).tolist() == [0, 5]
    assert len(y) == N - 1
    assert "1 of 24 rows lack a target or a group and are left out" in data.notes


def test_the_table_is_read_as_the_options_say(tmp_path: Path) -> None:
    options = folder_of(tmp_path, größe=[*(f"{k},5" for k in range(N - 1)), "unbekannt"])
    pd.read_csv(tmp_path / "labels.csv", dtype=str).to_csv(options["labels"], sep=";", encoding="cp1252", index=False)
    data = Images(**options | {"target": "größe"}, encoding="cp1252", missing="unbekannt").load(0)
    assert sorted(torch.cat([part.y for part in (data.train, data.val, data.test)]).flatten().tolist()) == [
        k + 0.5 for k in range(N - 1)
    ]


def test_views_of_training_are_pure_functions_of_the_draw(tmp_path: Path) -> None:
    options = folder_of(tmp_path)
    plain = Images(**options).load(0).train.x
    index, draws = torch.arange(6), torch.arange(6) * 10**15
    for augment, mirrored_alone in (("flip", True), ("crop+flip", False)):
        x = Images(**options, augment=augment).load(0).train.x
        views = x.sample(index, draws)
        assert torch.equal(views[2:3], x.sample(index[2:3], draws[2:3]))
        assert torch.equal(x[index], plain[index])  # evaluation and pairing see images as they are
        same = [torch.equal(v, p) or torch.equal(v, p.flip(-1)) for v, p in zip(views, plain[index], strict=True)]
        assert all(same) == mirrored_alone
        many = x.sample(index[:1].expand(40), torch.arange(40))
        assert 8 < sum(torch.equal(view, plain[index[0]]) for view in many) < 32 or not mirrored_alone


def test_what_is_broken_is_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    options = folder_of(tmp_path)
    (tmp_path / "photos/000.png").write_bytes(b"\x89PNG no image")
    (tmp_path / "photos/b/001.jpg").unlink()
    data = Images(**options, skip_broken=True).load(0)
    assert sum(len(part) for part in (data.train, data.val, data.test)) == N - 2
    assert "2 rows have no image that can be used and are left out" in data.notes[0]


def test_predictions_take_a_folder_or_paths_and_scale_as_training_did(tmp_path: Path) -> None:
    options = folder_of(tmp_path)
    data = Images(**options, normalise="weights").load(0)
    made = ImagePreprocessing.from_json(data.extras["preprocessing.json"], "it")
    assert (made.mean, made.std, made.targets) == (*IMAGENET, ("ink",))
    every = made.apply(options["path"])
    assert len(every) == N
    x = data.train.x
    paths = [str(x.files.files[row]) for row in x.rows[:3].tolist()]
    assert torch.equal(made.apply(paths)[torch.arange(3)], x[torch.arange(3)])
    assert made.as_given(Path(paths[0])) == Path(paths[0])
    assert made.as_given(tuple(paths)) == made.as_given(pd.Series(paths)) == paths
    for new in ([], torch.zeros(2), {"file": paths}):
        with pytest.raises(InputError, match="rows must be a folder, or paths of images; scaled=True takes pixels"):
            made.as_given(new)
    assert made.predictions(paths, np.ones((3, 1))).index.tolist() == paths


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda place: (place / name).write_bytes(content) and None


def change(column: str, value: Any, row: int = 2) -> Callable[[Path], None]:
    def edit(place: Path) -> None:
        frame = pd.read_csv(place / "labels.csv", dtype=str)
        frame.loc[row, column] = value
        frame.to_csv(place / "labels.csv", index=False)

    return edit


def nothing(place: Path) -> None:
    pass


WHOLE = (Path(__file__).parents[2] / "results/figures/bandwidth.png").read_bytes()
BAD: dict[str, tuple[Callable[[Path], None], dict[str, Any], str]] = {
    "no folder": (nothing, {"path": "nowhere"}, "images must be a folder, got nowhere: no such folder"),
    "a file": (nothing, {"path": "{place}/labels.csv"}, "images must be a folder, got .*labels.csv"),
    "none given": (nothing, {"path": ""}, "path must be given: images=photos labels=labels.csv"),
    "empty folder": (lambda place: (place / "void").mkdir(), {"path": "{place}/void"}, "void holds none"),
    "no labels": (nothing, {"labels": ""}, "labels must be given"),
    "no table": (nothing, {"labels": "{place}/other.csv"}, "no such file .*other.csv"),
    "no target": (nothing, {"target": ""}, "target must name a column of .*labels.csv; there are picture, ink"),
    "misspelt target": (nothing, {"target": "inc"}, "target 'inc' is no column of .*nearest name is 'ink'"),
    "target is the image": (nothing, {"target": "picture"}, "target 'picture' is the column of images"),
    "image column": (nothing, {"image": "file"}, "image 'file' is no column of .*there are picture, ink"),
    "other column": (nothing, {"image": "ink"}, "no column names the images below .*photos, such as 000.png"),
    "group": (nothing, {"group": "patient"}, "group 'patient' is no column of"),
    "group and split": (nothing, {"group": "a", "split": "b"}, "group and split both say"),
    "split word": (change("part", "later"), {"split": "part"}, "column part, row 3: .* val or test, got 'later'"),
    "missing file": (change("picture", "x.jpg"), {}, "row 3, column picture: there is no image 'x.jpg' below .*photos"),
    "no name": (change("picture", None), {}, "row 3, column picture: no image is named"),
    "twice": (change("picture", "000"), {}, "row 3, column picture: '000' is the image of row 1, too"),
    "two of a name": (write("photos/000.jpg", WHOLE), {}, "row 1, column picture: 2 images are called '000'"),
    "no image": (write("photos/002.tiff", b"II no image"), {}, "row 3, column picture: .*002.tiff cannot be read"),
    "cut": (write("photos/000.png", WHOLE[:5000]), {}, r"row 1, .*000.png cannot be read as an image: .*truncated"),
    "empty": (write("photos/000.png", b""), {}, "row 1, column picture: .*000.png cannot be read as an image"),
    "floats": (lambda p: Image.fromarray(np.ones((8, 8), np.float32)).save(p / "photos/002.tiff"), {},
               "002.tiff .* floating-point numbers; arrays= takes such"),
    "label": (change("ink", "much"), {}, "row 3, column 'ink': 'much' is not a number"),
    "one label": (lambda p: [change("ink", "5", k)(p) for k in range(N)] and None, {}, "is 5 in every row"),
    "size": (nothing, {"size": 10**5}, "size must be a whole number, 1 to 4096, got 100000"),
    "augment": (nothing, {"augment": "rotate"}, "augment must be one of none, flip, crop.flip, got 'rotate'"),
    "normalise": (nothing, {"normalise": "imagenet"}, "normalise must be one of train, weights, got 'imagenet'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_input_is_one_line_before_training(case: str, tmp_path: Path) -> None:
    spoil, given, message = BAD[case]
    options = folder_of(tmp_path, part=["train"] * 10 + ["test"] * (N - 10))
    spoil(tmp_path)
    filled = {key: value.format(place=tmp_path) if isinstance(value, str) else value for key, value in given.items()}
    with pytest.raises(InputError, match=message) as caught:
        Images(**options | filled).load(0)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_gone_at_prediction_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"it does not hold what a run keeps there \(cmixup images 1\)"):
        ImagePreprocessing.from_json('{"format": "cmixup images 1", "size": 8}', "it")
    made = ImagePreprocessing(("y",), ("",), 8, False, (0.0,) * 3, (1.0,) * 3)
    with pytest.raises(InputError, match=r"new: 1 of 1 files are not there: gone.png"):
        made.apply(["gone.png"], "new")
    broken = ImageRows(ImageFiles([tmp_path / "gone.png"], 8, deep=False), torch.zeros(1, dtype=torch.int64), *IMAGENET)
    with pytest.raises(InputError, match=r"gone.png cannot be read as an image: .*No such file"):
        broken[torch.tensor([0])]
