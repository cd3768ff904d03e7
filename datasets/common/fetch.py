"""Raw files are fetched from the mirror first, else from their canonical addresses, and verified by SHA-256.

`CMIXUP_DATA` is where raw files live (default `./data`); `CMIXUP_MIRROR` is a folder or URL that holds copies of
them under the same paths. A file appears at its place only once it is complete and its checksum is right.
"""

import functools
import os
import re
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cmixup.errors import InputError
from cmixup.files import put, sha256_of, temporary_beside

TIMEOUT = 30  # seconds without an answer before an address counts as out of reach
BLOCK = 1 << 14  # bytes written at once


class FetchError(InputError):
    """No source gave a file with the right checksum; the message lists each and the manual way."""


@dataclass(frozen=True)
class RawFile:
    """One file as its publisher made it."""

    path: str  # below the data root and below a mirror
    sha256: str = ""  # empty where none is known, for a file placed by hand
    size: int = 0  # in bytes; 0 where it is not known
    urls: tuple[str, ...] = ()  # that give it, in order of preference; `a.zip#member` for a member of a zip archive
    page: str = ""  # that a person would visit to get it
    licence: str = ""  # and "needs an agreement" where it cannot be fetched freely


#: Of each file that a dataset needs the alternatives that will do, preferred first.
Files = tuple[tuple[RawFile, ...], ...]


@dataclass(frozen=True)
class RawFolder:
    """A folder of files that only a person can get: under an agreement, very large, or without a published checksum.

    It is used where it lies. No checksum of it is public, so none is asked for.
    """

    path: str  # below the data root
    mirror: str  # below a mirror folder
    needs: tuple[str, ...]  # the files that have to be in it
    page: str  # where a person gets it
    licence: str
    how: str = ""  # commands that put it into the data root `{root}`; empty if a page is needed

    def places(self) -> list[Path]:
        """Return where it is looked for: the data root, then the mirror if that is a folder."""
        return [data_root() / self.path, *(folder / self.mirror for folder in mirror_folders())]

    def lacks(self, place: Path) -> list[str]:
        """Return the needed files that a place lacks."""
        return [name for name in self.needs if not (place / name).exists()]

    def present(self) -> bool:
        """Return whether one of its places holds everything that it needs."""
        return any(not self.lacks(place) for place in self.places())

    def find(self) -> Path:
        """Return where it is; if it is nowhere, or lacks something, the `FetchError` says how to get it."""
        places = self.places()
        for place in places:
            if not self.lacks(place):
                return place
        lines = [f"{p}: {'lacks ' + ', '.join(self.lacks(p)) if p.is_dir() else 'no such folder'}" for p in places]
        steps = f"\n  {self.how.format(root=data_root())}" if self.how else ""
        raise FetchError(
            f"{self.path} is not here ({self.licence}):\n  " + "\n  ".join(lines) + "\n"
            f"By hand: get it from {self.page} and unpack it as {places[0]}, with {', '.join(self.needs)} in it.{steps}"
        )


@functools.cache
def _read_list() -> dict[str, Any]:
    return dict(yaml.safe_load((Path(__file__).parents[1] / "raw_files.yaml").read_text(encoding="utf-8")))


def raw_files(dataset: str) -> Files:
    """Return the files of a dataset as `datasets/raw_files.yaml` has them: of each that it needs, the alternatives."""
    return tuple(
        tuple(RawFile(**{**file, "urls": tuple(file.get("urls", ()))}) for file in alternatives)
        for alternatives in _read_list()[dataset]
    )


def raw_folder(dataset: str) -> RawFolder:
    """Return the folder of a dataset as `datasets/raw_files.yaml` has it."""
    return RawFolder(**{**_read_list()[dataset], "needs": tuple(_read_list()[dataset]["needs"])})


def data_root() -> Path:
    """Return the folder for raw files: `CMIXUP_DATA`, or `./data`."""
    return Path(os.environ.get("CMIXUP_DATA") or "data")


def mirror_folders() -> list[Path]:
    """Return the mirror if it is a folder; nothing if it is an address or there is none."""
    mirror = os.environ.get("CMIXUP_MIRROR", "")
    return [] if not mirror or "://" in mirror else [Path(mirror)]


def present(file: RawFile) -> bool:
    """Return whether a file is in the data root, whole by its size."""
    path = data_root() / file.path
    return path.is_file() and (not file.size or path.stat().st_size == file.size)


def fetch(*alternatives: RawFile) -> tuple[RawFile, Path]:
    """Return the first of `alternatives` that can be had, and its verified path in the data root.

    Raises:
        FetchError: no source gave any of them with the right checksum, or the file in the data root is damaged.
    """
    root, mirror = data_root(), os.environ.get("CMIXUP_MIRROR", "").rstrip("/")
    for file in alternatives:
        path = root / file.path
        if path.exists():
            digest = sha256_of(path)
            if file.sha256 and digest != file.sha256:
                raise FetchError(
                    f"{path} has SHA-256 {digest}, expected {file.sha256}: it is damaged or was changed. "
                    "Remove it and run the command again to fetch a fresh copy."
                )
            return file, path
    sources = [(file, f"{mirror}/{file.path}") for file in alternatives if mirror]
    sources += [(file, url) for file in alternatives for url in file.urls]
    problems = []
    for file, source in sources:
        try:
            _get(source, file, root / file.path)
        except Unavailable as problem:
            problems.append(without_user(f"  {source}: {problem}"))
        else:
            return file, root / file.path
    preferred = alternatives[0]
    size = f"{preferred.size:,} bytes" if preferred.size else "size not known"
    raise FetchError(
        f"could not get {preferred.path} ({size}):\n" + "\n".join(problems) + "\n"
        f"By hand: get it from {preferred.page} and save it as {root / preferred.path} "
        f"(SHA-256 {preferred.sha256 or 'not published'}), "
        f"or point CMIXUP_MIRROR at a folder or URL that holds {preferred.path}."
    )


def without_user(text: str) -> str:
    """Return a text without the users and passwords of the addresses in it, since logs keep printed texts."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)


class Unavailable(Exception):
    """One source did not give the file; the message says why."""


def _get(url: str, file: RawFile, target: Path) -> None:
    """Download `url` to `target` if its checksum is right; no part of it is ever there."""
    address, _, member = url.partition("#")
    with temporary_beside(target, ".part") as part:
        if "://" not in address or address.startswith("file://"):
            source = Path(address.removeprefix("file://"))
            if not source.is_file():
                raise Unavailable("no such file")
            shutil.copyfile(source, part)
        else:
            _download(address, part)
        if member:
            _extract(part, member)
        if file.sha256 and (digest := sha256_of(part)) != file.sha256:
            raise Unavailable(f"has SHA-256 {digest}, expected {file.sha256}")
        put(part, target)


def _download(url: str, target: Path) -> None:
    import requests
    from pooch import HTTPDownloader

    try:  # to a terminal a bar is shown
        HTTPDownloader(sys.stderr.isatty(), BLOCK, timeout=TIMEOUT)(url, str(target), None)
    except requests.HTTPError as error:
        raise Unavailable(f"answered: {error}") from None
    except (requests.RequestException, ValueError) as error:
        raise Unavailable(f"out of reach ({type(error).__name__})") from None


def _extract(archive: Path, member: str) -> None:
    """Replace a zip archive by the contents of one member."""
    try:
        with zipfile.ZipFile(archive) as opened:
            content = opened.read(member)
    except Exception as error:  # encrypted, of an unknown method, damaged: anything
        raise Unavailable(f"no member {member} in the archive ({type(error).__name__})") from None
    archive.write_bytes(content)
