import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.data import ManyViews, Sampled
from cmixup.errors import InputError
from datasets.common.base import SPLITS
from datasets.common.fetch import FetchError, sha256_of
from datasets.common.video.avi import Avi
from datasets.common.video.clips import BEAT, Pulse
from datasets.echo import FOLDER, Echo, read_listing
from tests.datasets.samples import write_avi

COUNTS = {"train": 4, "val": 2, "test": 3}
SMALL = {"frames": 3, "size": 16, "pad": 2}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Videos of noise in the layout of the original's folder, as the data root's."""
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    monkeypatch.delenv("CMIXUP_MIRROR", raising=False)
    root, rng = tmp_path / FOLDER.path, np.random.default_rng(5)
    (root / "Videos").mkdir(parents=True)
    listed, traced = ["FileName,EF,Split"], ["FileName,Frame"]
    for part, count in COUNTS.items():
        for k in range(count):
            name = f"GENERATED_{part}_{k:05d}"
            grey = rng.integers(0, 256, (12 + k, 16, 16, 1), dtype=np.uint8)
            write_avi(root / "Videos" / f"{name}.avi", np.repeat(grey, 3, axis=3))
            listed.append(f"{name},{rng.uniform(10, 85):.6f},{part.upper()}")
            traced += [f"{name}.avi,{frame}" for frame in (3, 3, 9, 9)]
    (root / "FileList.csv").write_text("\n".join(listed) + "\n")
    (root / "VolumeTracings.csv").write_text("\n".join(traced) + "\n")
    return root


# ---- which videos


def test_splits_and_labels_are_those_of_the_list(root: Path) -> None:
    data, listed = Echo(**SMALL).load(0), pd.read_csv(root / "FileList.csv")
    for part in SPLITS:
        split, rows = getattr(data, part), listed[listed["Split"] == part.upper()]
        assert [path.stem for path in split.x.videos] == rows["FileName"].tolist()
        assert split.y[:, 0].tolist() == pytest.approx(rows["EF"].tolist())
        assert split.x.shape == (COUNTS[part], 3, 3, 16, 16)
        assert split.name == f"echo/{part}"
    assert isinstance(data.train.x, Sampled)
    assert isinstance(data.test.x, ManyViews)
    assert not isinstance(data.val.x, (Sampled, ManyViews))
    assert data.checksums == {"EchoNet-Dynamic/FileList.csv": sha256_of(root / "FileList.csv")}
    assert any("not EchoNet-Dynamic as published: 4 / 2 / 3" in note for note in data.notes)
    assert any("FileList.csv only" in note for note in data.notes)


def test_a_row_is_the_clip_of_its_own_video(root: Path) -> None:
    """Rows, labels and files stay aligned (the released code pairs labels with other videos)."""
    clips = Echo(**SMALL).load(0).train.x
    for row, path in enumerate(clips.videos):
        avi = Avi(path)
        start = int(clips.where[row] * (len(avi) - 4))
        frames = avi.read([start, start + 2, start + 4]).transpose(3, 0, 1, 2)
        seen = clips[torch.tensor([row])][0].numpy() * clips._std + clips._mean
        np.testing.assert_allclose(seen, frames, atol=1e-3)


def test_videos_with_fewer_than_two_traced_frames_are_left_out(root: Path) -> None:
    path = root / "VolumeTracings.csv"
    once = path.read_text().replace("GENERATED_train_00001.avi,9", "GENERATED_train_00001.avi,3")
    path.write_text(re.sub("GENERATED_test_00000.*\n", "", once))
    listing = read_listing(root)
    assert [p.stem for p in listing["train"]] == [f"GENERATED_train_0000{k}" for k in (0, 2, 3)]
    assert [p.stem for p in listing["test"]] == [f"GENERATED_test_0000{k}" for k in (1, 2)]


# ---- what is missing or damaged


def test_without_the_folder_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CMIXUP_MIRROR", str(tmp_path / "mirror"))
    for use in (Echo().fetch, lambda: Echo().load(0)):
        with pytest.raises(FetchError) as raised:
            use()
        message = str(raised.value)
        assert "needs an agreement" in message.splitlines()[0]
        assert "https://echonet.github.io/dynamic/" in message
        for place in (tmp_path / "data/EchoNet-Dynamic", tmp_path / "mirror/echonet/EchoNet-Dynamic"):
            assert f"{place}: no such folder" in message
    assert not FOLDER.present()


def test_a_mirror_is_used_where_it_lies(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror" / FOLDER.mirror
    mirror.parent.mkdir(parents=True)
    root.rename(mirror)
    for address in ("https://example.org/mirror", ""):
        monkeypatch.setenv("CMIXUP_MIRROR", address)
        assert not FOLDER.present()
    monkeypatch.setenv("CMIXUP_MIRROR", str(tmp_path / "mirror"))
    assert FOLDER.find() == mirror
    assert Echo(**SMALL).load(0).train.x.videos[0].parent == mirror / "Videos"
    assert not root.exists()


@pytest.mark.parametrize(
    ("pattern", "new", "message"),
    [
        ("train_0000", "gone_", r" lists are missing in .*Videos: GENERATED_gone_0\.avi"),
        ("EF", "Other", "has no column 'EF'; its columns are FileName, Other, Split"),
        ("VAL", "DEV", ", line 6: Split must be TRAIN, VAL or TEST, got 'DEV'"),
        ("TRAIN", "TRAIN\nGENERATED_val_00001,50", ", line 3: the row is cut short"),
        (r",[\d.]+", ",nan", ", line 2: EF must be a percentage from 0 to 100, got 'nan'"),
        (r",[\d.]+", ",-1", ", line 2: EF must be a percentage from 0 to 100, got '-1'"),
        (r",[\d.]+", ",normal", ", line 2: EF must be a percentage from 0 to 100, got 'normal'"),
    ],
)
def test_a_list_that_cannot_be_is_refused_with_its_line(pattern: str, new: str, message: str, root: Path) -> None:
    path = root / "FileList.csv"
    path.write_text(re.sub(pattern, new, path.read_text(), count=1))
    with pytest.raises(InputError, match=rf"FileList\.csv ?{message}"):
        read_listing(root)


# ---- the synthetic stand-in


def test_a_pulse_loses_its_share_of_brightness_in_half_a_beat() -> None:
    pulse = Pulse((0, 1), 60, 64, 40.0)
    first, low, again = pulse.read(np.array([0, BEAT // 2, BEAT]))
    assert first.shape == (64, 64, 3)
    assert (first[..., 0] == first[..., 2]).all()
    assert low.mean() / first.mean() == pytest.approx(0.6, abs=0.02)
    assert again.mean() == pytest.approx(first.mean(), rel=0.02)
    assert np.array_equal(pulse.read(np.arange(8))[[7, 3]], pulse.read(np.array([7, 3])))
