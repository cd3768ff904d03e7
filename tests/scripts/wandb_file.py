"""Reads the file of an offline wandb run: records of protocol buffers in LevelDB's log format."""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLOCK, HEADER, START = 32768, 7, 7  # bytes of a block, of a record's header, and of the file's own header
FULL, FIRST, LAST = 1, 2, 4


@dataclass
class OfflineRun:
    """What wandb would upload: `settings` of the run, its configuration, history rows, summary and artifacts."""

    settings: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, list[str]] = field(default_factory=dict)
    folder: Path = Path()

    def table(self, key: str) -> list[dict[str, Any]]:
        """The rows of a logged table."""
        (entry,) = [row[key] for row in self.history if key in row]
        content = json.loads((self.folder / "files" / entry["path"]).read_text())
        return [dict(zip(content["columns"], row, strict=True)) for row in content["data"]]


def records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a LevelDB log."""
    assert content[:4] == b":W&B"
    place, whole = START, b""
    while place + HEADER <= len(content):
        left = BLOCK - place % BLOCK
        if left < HEADER:
            place += left
            continue
        _, size, kind = struct.unpack("<IHB", content[place : place + HEADER])
        whole += content[place + HEADER : place + HEADER + size]
        place += HEADER + size
        if kind in (FULL, LAST):
            yield whole
            whole = b""


def nested(items: Any) -> dict[str, Any]:
    """Keys may be a list of names, or one."""
    tree: dict[str, Any] = {}
    for item in items:
        *outer, last = list(item.nested_key) or [item.key]
        place = tree
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = json.loads(item.value_json)
    return tree


def read_offline(path: Path) -> OfflineRun:
    """The run in a `.wandb` file."""
    from wandb.proto import wandb_internal_pb2 as pb

    run = OfflineRun({}, folder=path.parent)
    for content in records(path.read_bytes()):
        record = pb.Record.FromString(content)
        kind = record.WhichOneof("record_type")
        if kind == "run":
            made = record.run
            names = ("run_id", "sweep_id", "run_group", "display_name", "project", "job_type")
            run.settings |= {name: getattr(made, name) for name in names} | {"tags": list(made.tags)}
            run.config |= nested(made.config.update)
        elif kind == "config":
            run.config |= nested(record.config.update)
        elif kind == "history":
            run.history.append(nested(record.history.item))
        elif kind == "artifact" and record.artifact.type == "run":
            run.artifacts[record.artifact.name] = [entry.path for entry in record.artifact.manifest.contents]
        elif kind == "summary":
            run.summary |= nested(record.summary.update)
    return run
