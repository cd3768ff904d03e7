"""Damage to files: what bad disks, broken downloads, editors and attackers leave."""

import gzip
import io
import random
import tarfile
import zipfile
from collections.abc import Callable

HUGE = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x7f\xff\xff\xff", b"\xff" * 8, b"\x00" * 8)
HTML = b"<!DOCTYPE html><html><head><title>404 Not Found</title></head><body>Not Found</body></html>\n"
TOKENS = (
    b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"1e200", b"-1e308", b"9" * 400, b"", b" ", b"\x00", b"?", b"NA",
    b"1,5", b"0x1f", b"1_000", b"--1", b'"', b'""', b"'", b"\xe4", b"\xff\xfe", "ü€".encode(), b"null", b"true",
    b"{}", b"[]", b"[" * 3000, b"18446744073709551616", b"4294967295", b"-1", b"0", b"2147483648", b"\r", b"\n",
    b"\t", b",",
)  # fmt: skip


def truncated(data: bytes, rnd: random.Random) -> bytes:
    """Cut the end off."""
    return data[: rnd.randrange(len(data) + 1)]


def flipped(data: bytes, rnd: random.Random) -> bytes:
    """Flip one to eight bits."""
    found = bytearray(data)
    for _ in range(rnd.randint(1, 8)):
        if found:
            found[rnd.randrange(len(found))] ^= 1 << rnd.randrange(8)
    return bytes(found)


def early_flip(data: bytes, rnd: random.Random) -> bytes:
    """Change bytes of the header."""
    found = bytearray(data)
    for _ in range(rnd.randint(1, 4)):
        if found:
            found[rnd.randrange(min(len(found), 128))] = rnd.randrange(256)
    return bytes(found)


def huge_count(data: bytes, rnd: random.Random) -> bytes:
    """Write a count that cannot be over some bytes, mostly of the header."""
    piece = rnd.choice(HUGE)
    most = max(1, min(len(data), rnd.choice((64, 512, len(data)))) - len(piece))
    at = rnd.randrange(most)
    return data[:at] + piece + data[at + len(piece) :]


def inserted(data: bytes, rnd: random.Random) -> bytes:
    """Insert bytes."""
    at = rnd.randrange(len(data) + 1)
    return data[:at] + rnd.randbytes(rnd.choice((1, 2, 7, 100))) + data[at:]


def removed(data: bytes, rnd: random.Random) -> bytes:
    """Take bytes out."""
    at = rnd.randrange(len(data) + 1)
    return data[:at] + data[at + rnd.choice((1, 2, 7, 100)) :]


def doubled(data: bytes, rnd: random.Random) -> bytes:
    """Repeat a piece, or all of it."""
    if rnd.random() < 0.3:
        return data + data
    at = rnd.randrange(len(data) + 1)
    return data[:at] + data[at : at + 50] + data[at:]


def lines_changed(data: bytes, rnd: random.Random) -> bytes:
    """Delete, repeat, swap or empty lines."""
    lines = data.split(b"\n")
    a, b = rnd.randrange(len(lines)), rnd.randrange(len(lines))
    kind = rnd.randrange(5)
    if kind == 0:
        del lines[a]
    elif kind == 1:
        lines.insert(a, lines[b])
    elif kind == 2:
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == 3:
        lines[a] = b""
    else:
        lines = lines[: a + 1]
    return b"\n".join(lines)


def token_changed(data: bytes, rnd: random.Random) -> bytes:
    """Put something else in the place of a word or number of a text."""
    at = rnd.randrange(len(data) + 1)
    end = at
    while end < len(data) and data[end : end + 1] not in b',; \t\n\r":|{}[]':
        end += 1
    return data[:at] + rnd.choice(TOKENS) + data[end:]


def other_encoding(data: bytes, rnd: random.Random) -> bytes:
    """Store a text in another encoding, with or without a mark, or with other line ends."""
    text = data.decode("latin1")
    kind = rnd.randrange(6)
    if kind == 0:
        return text.encode("utf-16")
    if kind == 1:
        return b"\xef\xbb\xbf" + data
    if kind == 2:
        return text.encode("utf-32")
    if kind == 3:
        return data.replace(b"\n", b"\r\n" if rnd.random() < 0.5 else b"\r")
    if kind == 4:
        return text.replace("a", "ä").encode("latin1")
    return text.encode("utf-16-le")


def wrapped(data: bytes, rnd: random.Random) -> bytes:
    """Pack it once more."""
    kind = rnd.randrange(4)
    if kind == 0:
        return gzip.compress(data, 1, mtime=0)
    stream = io.BytesIO()
    if kind == 1:
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(zipfile.ZipInfo("inner"), data)
    elif kind == 2:
        with tarfile.open(fileobj=stream, mode="w") as packed:
            info = tarfile.TarInfo("inner")
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    else:
        stream.write(gzip.compress(bytes(1 << 22), 9, mtime=0))  # a small bomb
    return stream.getvalue()


def replaced(data: bytes, rnd: random.Random) -> bytes:
    """Put another file in its place."""
    kind = rnd.randrange(5)
    if kind == 0:
        return b""
    if kind == 1:
        return HTML
    if kind == 2:
        return bytes(len(data))
    return rnd.randbytes(len(data) if kind == 3 else rnd.randrange(1, 300))


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncated,
    truncated,
    flipped,
    flipped,
    early_flip,
    huge_count,
    inserted,
    removed,
    doubled,
    lines_changed,
    token_changed,
    token_changed,
    other_encoding,
    wrapped,
    replaced,
)


def mutate(data: bytes, rnd: random.Random) -> bytes:
    """Return a file with one to three kinds of damage."""
    for _ in range(rnd.choice((1, 1, 1, 2, 3))):
        data = rnd.choice(MUTATIONS)(data, rnd)
    return data
