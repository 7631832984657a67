"""What a start took out of a log, kept aside under another name: `<first offset>.log.kept`.

Recovery deletes no whole batch. A torn or damaged end of a segment is copied to a file of its own
before the segment is cut, and a segment that may not stay in the log is renamed. The name bears the
offset that the log expected at the file's first byte; a second file for the same offset ends in
`.kept.2`. Apache Kafka ignores such names. With the broker stopped, a file that begins with a whole
batch can be put back as `<first offset>.log`.

Retention deletes kept files as it deletes segments: after retention.ms, when retention.bytes is
exceeded, or once the log start offset moves beyond their first offset. A topic without limits keeps
them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.storage import File, Storage

KEPT = ".kept"

_NAME = re.compile(r"([0-9]{20})\.log\.kept(?:\.[0-9]+)?")
_CHUNK_BYTES = 1 << 20

_log = logging.getLogger("urteil.broker.log")


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file beside the segments; the name and not the path, since folders are renamed."""

    name: str
    first_offset: int
    size: int
    since_ms: int


class KeptFiles:
    """The kept files of one log. Files are only added while the log is recovered."""

    __slots__ = ("_now_ms", "_start_at_load", "_storage", "files")

    def __init__(self, storage: Storage, directory: Path, now_ms: int) -> None:
        self._storage = storage
        self._now_ms = now_ms
        self._start_at_load: int | None = None
        names = (_NAME.fullmatch(name) for name in storage.names(directory))
        self.files = [
            self._described(directory / found[0], int(found[1])) for found in names if found
        ]

    def _described(self, path: Path, first_offset: int) -> KeptFile:
        file = self._storage.open(path)
        try:
            return KeptFile(path.name, first_offset, file.size(), file.modified_ms())
        finally:
            file.close()

    def keep_segment(self, file: File, first_offset: int) -> Path | None:
        """Rename a segment's `.log` file; None, and nothing is done, if it holds nothing but zeros,
        as preallocation and power cuts leave it. Raises OSError."""
        if _is_blank(file, 0):
            return None
        target = self._free_path(file.path.parent, first_offset)
        file.set_modified_ms(self._now_ms)
        self._storage.rename(file.path, target)
        self.files.append(self._described(target, first_offset))
        return target

    def keep_end(self, file: File, position: int, first_offset: int) -> Path | None:
        """Copy the bytes of `file` from `position` on, durably; None if they are all zero. Raises
        OSError."""
        if _is_blank(file, position):
            return None
        target = self._free_path(file.path.parent, first_offset)
        copy_end(self._storage, file, position, target, self._now_ms)
        self.files.append(self._described(target, first_offset))
        return target

    def _free_path(self, directory: Path, first_offset: int) -> Path:
        name = f"{first_offset:020d}.log{KEPT}"
        path, number = directory / name, 1
        while self._storage.exists(path):
            number += 1
            path = directory / f"{name}.{number}"
        return path

    def set_log_start(self, log_start_offset: int) -> None:
        """The log is recovered and begins there: later starts are moved by retention."""
        self._start_at_load = log_start_offset

    def remove_expired(
        self, config: LogConfig, log_bytes: int, log_start_offset: int, now_ms: int
    ) -> list[str]:
        """The names of files that retention takes now; they are forgotten here."""
        if not self.files:
            return []
        moved = log_start_offset != self._start_at_load
        excess = log_bytes + sum(file.size for file in self.files) - config.retention_bytes
        gone = []
        for file in sorted(self.files, key=lambda file: file.since_ms):
            too_old = 0 <= config.retention_ms < now_ms - file.since_ms
            too_much = config.retention_bytes >= 0 and excess > 0
            if (moved and file.first_offset < log_start_offset) or (
                config.deletes and (too_old or too_much)
            ):
                gone.append(file)
                excess -= file.size
                _log.info("%s: kept aside until now, removed", file.name)
        self.files = [file for file in self.files if file not in gone]
        return [file.name for file in gone]


def copy_end(storage: Storage, file: File, position: int, target: Path, modified_ms: int) -> None:
    """Write what `file` holds from `position` on to a new file, whole and durable before it has its
    name. Raises OSError."""
    part = target.with_name(target.name + ".tmp")
    copy = storage.open(part, create=True)
    try:
        copy.truncate(0)
        for at, chunk in chunks(file, position):
            copy.write_at([chunk], len(chunk), at - position)
        copy.sync()
        copy.set_modified_ms(modified_ms)
    except OSError:
        storage.remove(part)
        raise
    finally:
        copy.close()
    storage.rename(part, target)
    storage.sync_directory(target.parent)


def chunks(file: File, position: int) -> Iterator[tuple[int, bytes]]:
    """The positions and bytes of pieces, from `position` to the end of the file."""
    while chunk := file.read_at(_CHUNK_BYTES, position):
        yield position, chunk
        position += len(chunk)


def _is_blank(file: File, position: int) -> bool:
    return not any(chunk.strip(b"\0") for _, chunk in chunks(file, position))
