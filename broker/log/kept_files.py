"""Kept files, `<first offset>.log.kept`: the bytes that recovery removed from a log.

Recovery deletes no complete batch. Before it truncates a torn or damaged segment, it copies the
removed end to a kept file; a segment that cannot stay in the log is renamed to one. The name has
the offset that the log expected at the file's first byte; a second file for the same offset ends in
`.kept.2`. Apache Kafka ignores such names. An operator can stop the broker and rename a kept file
that begins with a complete batch to `<first offset>.log`.

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
    """A kept file, by its name: the path changes when the log's folder is renamed."""

    name: str
    first_offset: int
    size: int
    since_ms: int


class KeptFiles:
    """The kept files of one log. Only recovery adds files."""

    __slots__ = ("_now_ms", "_start_at_load", "_storage", "files")

    def __init__(self, storage: Storage, directory: Path, now_ms: int) -> None:
        self._storage = storage
        self._now_ms = now_ms
        self._start_at_load: int | None = None
        names = (_NAME.fullmatch(name) for name in storage.names(directory))
        self.files = [
            self._describe(directory / match[0], int(match[1])) for match in names if match
        ]

    def _describe(self, path: Path, first_offset: int) -> KeptFile:
        file = self._storage.open(path)
        try:
            return KeptFile(path.name, first_offset, file.size(), file.modified_ms())
        finally:
            file.close()

    def keep_segment(self, file: File, first_offset: int) -> Path | None:
        """Rename a segment's `.log` file to a kept file and return its path. A file of zeros, as
        preallocation and power cuts leave it, is not kept: returns None. Raises OSError."""
        if _is_blank(file, 0):
            return None
        target = self._free_path(file.path.parent, first_offset)
        file.set_modified_ms(self._now_ms)
        self._storage.rename(file.path, target)
        self.files.append(self._describe(target, first_offset))
        return target

    def keep_end(self, file: File, position: int, first_offset: int) -> Path | None:
        """Copy the bytes of `file` from `position` on to a kept file, durably, and return its path;
        None if they are all zero. Raises OSError."""
        if _is_blank(file, position):
            return None
        target = self._free_path(file.path.parent, first_offset)
        copy_end(self._storage, file, position, target, self._now_ms)
        self.files.append(self._describe(target, first_offset))
        return target

    def _free_path(self, directory: Path, first_offset: int) -> Path:
        name = f"{first_offset:020d}.log{KEPT}"
        path, number = directory / name, 1
        while self._storage.exists(path):
            number += 1
            path = directory / f"{name}.{number}"
        return path

    def set_log_start(self, log_start_offset: int) -> None:
        """Set the log start offset after recovery; a later start was moved by retention or
        DeleteRecords."""
        self._start_at_load = log_start_offset

    def remove_expired(
        self, config: LogConfig, log_bytes: int, log_start_offset: int, now_ms: int
    ) -> list[str]:
        """Drop the files that have expired and return their names; the caller deletes them."""
        if not self.files:
            return []
        moved = log_start_offset != self._start_at_load
        excess = log_bytes + sum(file.size for file in self.files) - config.retention_bytes
        expired = []
        for file in sorted(self.files, key=lambda file: file.since_ms):
            too_old = 0 <= config.retention_ms < now_ms - file.since_ms
            too_much = config.retention_bytes >= 0 and excess > 0
            if (moved and file.first_offset < log_start_offset) or (
                config.deletes and (too_old or too_much)
            ):
                expired.append(file)
                excess -= file.size
                _log.info("%s: kept file expired, removed", file.name)
        self.files = [file for file in self.files if file not in expired]
        return [file.name for file in expired]


def copy_end(storage: Storage, file: File, position: int, target: Path, modified_ms: int) -> None:
    """Copy `file` from `position` to its end into `target`, which appears only when it is complete
    and durable. Raises OSError."""
    part = target.with_name(target.name + ".tmp")
    copy = storage.open(part, create=True)
    try:
        copy.truncate(0)
        for at, chunk in iter_chunks(file, position):
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


def iter_chunks(file: File, position: int) -> Iterator[tuple[int, bytes]]:
    """(position, bytes) of consecutive chunks, from `position` to the end of the file."""
    while chunk := file.read_at(_CHUNK_BYTES, position):
        yield position, chunk
        position += len(chunk)


def _is_blank(file: File, position: int) -> bool:
    return not any(chunk.strip(b"\0") for _, chunk in iter_chunks(file, position))
