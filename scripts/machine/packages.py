"""The installed packages, as their own RECORD names their files."""

from __future__ import annotations

import hashlib
from importlib import metadata


def digest_of_record(package: str) -> str:
    """Return the SHA-256 of an installed package's RECORD, which lists its files; empty where it has none."""
    try:
        text = metadata.distribution(package).read_text("RECORD")
    except metadata.PackageNotFoundError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""
