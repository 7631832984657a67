"""The flushed part of a node's files, by the calls that its processes made.

`chaos/flush_recorder` writes the record, and describes its lines.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from urteil.chaos.entry_changes import Created, EntryChange, Removed, Renamed

GENERATION = 0x80087601
"""FS_IOC_GETVERSION: another number for each file that has had an inode."""
_LONG = struct.Struct("l")
FileIdentity = tuple[int, int, int]
FolderIdentity = tuple[int, int]


def kept_files(record: Path) -> Path:
    """The folder with other names of files that were replaced or removed. Only a power cut needs
    it."""
    return record.with_name(f"{record.name}.kept")


class FlushedFiles:
    """The flushed size of each file, and the changes of each folder since its last flush. A power
    cut may destroy all data behind that size, and undo these changes."""

    def __init__(self, record: Path) -> None:
        """The last line of a process that was killed may be incomplete: it counts as not written,
        as does its flush, which had not returned."""
        self._record = record
        self._sizes: dict[FileIdentity, int] = {}
        self._changes: dict[FolderIdentity, list[EntryChange]] = {}
        with record.open() as lines:
            for line in lines:
                if line.endswith("\n"):
                    self._read(*line.split())

    def flushed_bytes(self, path: Path) -> int:
        """The number of bytes from the file's begin that are on the disk; 0 if it was never
        flushed."""
        return self._sizes.get(_file_identity(path), 0)

    def unflushed_changes(self, folder: Path) -> list[EntryChange]:
        """The changes of a folder's entries since its last flush, in order."""
        return self._changes.get(_folder_identity(folder), [])

    def note_flush_of(self, folder: Path) -> None:
        """Record that the folder is on the disk as it is now."""
        device, inode = _folder_identity(folder)
        with self._record.open("a") as record:
            record.write(f"entries {device} {inode}\n")
        self._changes.pop((device, inode), None)

    def _read(self, what: str, *words: str) -> None:
        match what, *words:
            case "flushed" | "cut", device, inode, generation, size:
                file = int(device), int(inode), int(generation)
                flushed = (
                    int(size) if what == "flushed" else min(self._sizes.get(file, 0), int(size))
                )
                self._sizes[file] = flushed
            case "entries", device, inode:
                self._changes.pop((int(device), int(inode)), None)
            case "created", at_ns, device, inode, name:
                self._note(device, inode, Created(int(at_ns), name))
            case "renamed", at_ns, device, inode, name, new, kept:
                self._note(device, inode, Renamed(int(at_ns), name, new, self._kept(kept)))
            case "removed", at_ns, device, inode, name, kept:
                self._note(device, inode, Removed(int(at_ns), name, self._kept(kept)))
            case "failed", device, inode, name:
                changes = self._changes.get((int(device), int(inode)), [])
                last = [change for change in changes if change.name == name][-1:]
                changes[:] = [change for change in changes if change not in last]
            case ("loaded",):
                pass

    def _note(self, device: str, inode: str, change: EntryChange) -> None:
        self._changes.setdefault((int(device), int(inode)), []).append(change)

    def _kept(self, name: str) -> Path | None:
        return None if name == "-" else kept_files(self._record) / name


def _folder_identity(folder: Path) -> FolderIdentity:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _file_identity(path: Path) -> FileIdentity:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        try:
            found = fcntl.ioctl(file.fileno(), GENERATION, _LONG.pack(0))
            generation = _LONG.unpack(found)[0] & 0xFFFFFFFF
        except OSError:
            generation = 0
    return status.st_dev, status.st_ino, generation
