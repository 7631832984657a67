"""How far the files of a node are on its disk, by the calls that its process made.

`chaos/flush_recorder` writes the record: a line for each flush (device, inode, generation, size of
the file when it began), for each truncation (-1 - size), and zeros for each process that loads it.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterable
from pathlib import Path

GENERATION = 0x80087601
"""FS_IOC_GETVERSION: another number for each file that has had an inode."""
_LONG = struct.Struct("l")
Identity = tuple[int, int, int]


class FlushedFiles:
    """The flushed size of each file. Everything behind it a power cut may take."""

    def __init__(self, lines: Iterable[str]) -> None:
        """The last line of a process that was killed may be incomplete: it counts as not written,
        as does its flush, which had not returned."""
        self._sizes: dict[Identity, int] = {}
        for line in lines:
            if not line.endswith("\n"):
                return
            device, inode, generation, size = map(int, line.split())
            self._note((device, inode, generation), size)

    def flushed_bytes(self, path: Path) -> int:
        """How many bytes from the file's begin are on the disk; 0 if it was never flushed."""
        return self._sizes.get(_identity(path), 0)

    def _note(self, file: Identity, size: int) -> None:
        if size >= 0:
            self._sizes[file] = size
        elif file in self._sizes:
            self._sizes[file] = min(self._sizes[file], -1 - size)


def _identity(path: Path) -> Identity:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        try:
            found = fcntl.ioctl(file.fileno(), GENERATION, _LONG.pack(0))
            generation = _LONG.unpack(found)[0] & 0xFFFFFFFF
        except OSError:
            generation = 0
    return status.st_dev, status.st_ino, generation
