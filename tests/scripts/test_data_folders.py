"""scripts.data with datasets whose folder nobody fetches for the user."""

from pathlib import Path

import pytest

from datasets.common.fetch import FetchError
from datasets.dti import DTI, FOLDER
from scripts import data as module


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    monkeypatch.delenv("CMIXUP_MIRROR", raising=False)
    monkeypatch.setattr(module, "option_names", lambda _: ["dti"])


def test_status_and_fetch_say_whether_a_folder_is_there_and_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module.print_status()
    assert "by hand" in capsys.readouterr().out
    with pytest.raises(FetchError, match=f"\n  mkdir -p {tmp_path}/dti && curl"):
        module.fetch_all(["dti"])
    (tmp_path / FOLDER.path).mkdir(parents=True)
    for run in FOLDER.needs:
        (tmp_path / FOLDER.path / run).touch()
    module.print_status()
    printed = capsys.readouterr().out
    assert "here" in printed
    assert "by hand" not in printed
    module.fetch_all(["dti"])
    assert capsys.readouterr().out == f"dti: {tmp_path / FOLDER.path} (no checksum of it is public)\n"


def test_fetching_everything_leaves_such_folders_out(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[list[str]] = []
    monkeypatch.setattr(module, "option_names", lambda _: ["airfoil", "dti"])
    monkeypatch.setattr(module, "fetch_all", requests.append)
    module.main(["fetch"])
    assert requests == [["airfoil"]]
    monkeypatch.setenv("CMIXUP_MIRROR", "https://copies.example")  # which may hold files without an address
    monkeypatch.setattr(module, "option_names", lambda _: ["dti", "pascal1d"])
    module.main(["fetch"])
    assert requests[1:] == [["pascal1d"]]
    assert DTI.folders == (FOLDER,)
