"""Local copies of the folders of running nodes on hosts, which follow their changes.

The agent waits for a change and answers with appended data, or with a file that was replaced or
truncated. So the copy is behind by the agent's poll and one round trip, and an unchanged folder
costs two requests a second. Index files are left out: they are megabytes of zeros while they are
written.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until
from urteil.harness.runtimes.hosts.messages import CHUNK_BYTES

POLL_S = 0.02
WAIT_S = 0.5
TAIL_BYTES = 1024
"""If the bytes before a file's former end are unchanged, the file was only appended to."""
LEFT_OUT = (".index", ".timeindex", ".txnindex")


class Version(msgspec.Struct, frozen=True, array_like=True):
    """The known version of a file: its inode and time of change, its size, a checksum of its
    tail."""

    inode: int
    changed_ns: int
    size: int
    tail: int


class Change(msgspec.Struct, frozen=True, array_like=True):
    """New content of a file from `start` on, at most a chunk. A removed file has no version."""

    name: str
    version: Version | None = None
    start: int = 0
    content: bytes = b""


def await_changes(folder: Path, known: Mapping[str, Version]) -> list[Change]:
    """The changes in a folder since the known versions. Empty after WAIT_S without a change."""
    return until(lambda: _changes(folder, known), deadline_s=WAIT_S, poll_s=POLL_S)


def _changes(folder: Path, known: Mapping[str, Version]) -> list[Change]:
    files = sorted(path for path in _entries(folder) if path.suffix not in LEFT_OUT)
    changes = [_change(path, known.get(path.name)) for path in files]
    present = {change.name for change in changes if change is not None and change.version}
    present |= {path.name for path, change in zip(files, changes, strict=True) if change is None}
    gone = [Change(name) for name in known if name not in present]
    return gone + [change for change in changes if change is not None and change.version]


def _entries(folder: Path) -> list[Path]:
    """The entries of a folder; None if it does not exist, as while a fault replaces it."""
    try:
        return [folder / name for name in os.listdir(folder)]
    except FileNotFoundError:
        return []


def _change(path: Path, known: Version | None) -> Change | None:
    """The change of a file; None if it is unchanged. A removed file has no version."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            seen = (status.st_ino, status.st_mtime_ns)
            if known and (*seen, status.st_size) == (known.inode, known.changed_ns, known.size):
                return None
            start = 0
            if known and status.st_size >= known.size:
                tail_at = max(0, known.size - TAIL_BYTES)
                file.seek(tail_at)
                if crc32(file.read(known.size - tail_at)) == known.tail:
                    start = known.size
            file.seek(start)
            content = file.read(CHUNK_BYTES)
            end = start + len(content)
            file.seek(max(0, end - TAIL_BYTES))
            tail = crc32(file.read(end - file.tell()))
    except (FileNotFoundError, IsADirectoryError):
        return Change(path.name)
    return Change(path.name, Version(*seen, end, tail), start, content)


class FollowedFolder:
    """The copy `folder` of a node's folder, from `start` to `close`. `read` requests the changes
    since known versions; the copy is not updated while it fails."""

    def __init__(self, read: Callable[[Mapping[str, Version]], Any], folder: Path) -> None:
        self._read = read
        self._folder = folder
        self._known: dict[str, Version] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follow", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End, and remove the copy. Repeatable."""
        self._closing.set()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                changes = msgspec.convert(self._read(self._known), list[Change])
            except LabFailure:  # whoever calls a lost host next reports it
                self._closing.wait(WAIT_S)
                continue
            for change in changes:
                self._apply(change)

    def _apply(self, change: Change) -> None:
        path = self._folder / change.name
        if change.version is None:
            path.unlink(missing_ok=True)
            self._known.pop(change.name, None)
            return
        self._known[change.name] = change.version
        if change.start:
            with path.open("ab") as file:
                file.write(change.content)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._folder / f".{change.name}.part"
        part.write_bytes(change.content)
        part.replace(path)
