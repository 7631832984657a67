"""A growing file of lines: appended through shared memory, read while it grows or after a crash.

The writer maps the end of the file and copies each line there, its newline last. There is no system
call, so the threads of a client do not wait for each other at every line. A copied line belongs to
the kernel and survives the SIGKILL of the writer. Space is allocated ahead, so that a full disk is
an error and not a signal. Until its writer has closed it, the file ends in zeros.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

ROOM_BYTES = 1 << 20
BLOCK_BYTES = 1 << 20
NEWLINE = 10
_PAGE = mmap.ALLOCATIONGRANULARITY


class LineFile:
    """Appends lines to a new or an existing file. Not safe among threads."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._map: mmap.mmap | None = None
        self._begin = 0
        self._at = written_bytes(path)
        self._room = 0

    def append(self, line: bytes) -> None:
        """Append a line without its newline. Raises OSError if the disk is full."""
        end = self._at + len(line)
        if end >= self._room:
            self._make_room(len(line) + 1)
            end = self._at + len(line)
        assert self._map is not None
        self._map[self._at : end] = line
        self._map[end] = NEWLINE
        self._at = end + 1

    def close(self) -> None:
        """Cut the unused space."""
        end = self._begin + self._at
        self._unmap()
        os.truncate(self._file, end)
        os.close(self._file)

    def _make_room(self, needed: int) -> None:
        end = self._begin + self._at
        begin = end - end % _PAGE
        room = -(-(end - begin + needed + ROOM_BYTES) // _PAGE) * _PAGE
        _allocate(self._file, end, begin + room)
        self._unmap()
        self._map = mmap.mmap(self._file, room, offset=begin)
        self._begin, self._at, self._room = begin, end - begin, room

    def _unmap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None


def _allocate(file: int, begin: int, end: int) -> None:
    """Allocate zeros on the disk; macOS has no call for it. Raises OSError when the
    disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, begin, end - begin)
        return
    while begin < end:
        begin += os.pwrite(file, bytes(end - begin), begin)


def read_lines(path: Path, start: int = 0) -> Iterator[bytes]:
    """The complete lines from byte `start` on, each with its newline.

    A read of a growing file may see a later page newer than an earlier one: zeros before a newline.
    """
    with path.open("rb", buffering=BLOCK_BYTES) as lines:
        lines.seek(start)
        for line in lines:
            if not line.endswith(b"\n") or b"\0" in line:
                return
            yield line


def written_bytes(path: Path) -> int:
    """The number of written bytes, without allocated space."""
    end = path.stat().st_size
    with path.open("rb") as file:
        while end:
            begin = max(0, end - BLOCK_BYTES)
            file.seek(begin)
            used = len(file.read(end - begin).rstrip(b"\0"))
            if used:
                return begin + used
            end = begin
    return 0
