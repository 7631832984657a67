"""A disk in memory behind the storage object: it outlives processes, and loses what was not synced
when its machine loses power."""

from __future__ import annotations

import errno
import os
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from urteil.broker.log.storage import Buffer, LockedFile

Note = Callable[..., None]


@dataclass(slots=True)
class Inode:
    """Content as processes see it; what of it is on the platter; the writes between the two."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    writes: list[tuple[int, bytes | None]] = field(default_factory=list)
    modified_ms: int = 0

    def write(self, position: int, data: bytes | None) -> None:
        """None cuts the file at `position`."""
        _apply(self.data, position, data)
        self.writes.append((position, data))

    def sync(self) -> None:
        for position, data in self.writes:
            _apply(self.synced, position, data)
        self.writes.clear()

    def lose_power(self, rng: random.Random) -> None:
        """Some of the writes that were under way arrived, the next one in part."""
        kept = rng.randint(0, len(self.writes))
        for position, data in self.writes[:kept]:
            _apply(self.synced, position, data)
        if kept < len(self.writes):
            position, data = self.writes[kept]
            if data is not None:
                _apply(self.synced, position, data[: rng.randrange(len(data) + 1)])
        self.data = bytearray(self.synced)
        self.writes.clear()


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        if position <= len(content):
            del content[position:]
        else:
            content.extend(bytes(position - len(content)))
        return
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


class Disk:
    """All files of one machine."""

    def __init__(self, name: str, note: Note, now_ms: Callable[[], int]) -> None:
        self.name = name
        self.note = note
        self.now_ms = now_ms
        self.files: dict[str, Inode] = {}
        self.directories: set[str] = {"/"}
        self.fresh: dict[str, None] = {}  # new names of directories not synced since, in order
        self.replaced: dict[str, Inode | None] = {}  # what an unsynced replacement replaced
        self.locks: dict[str, DiskStorage] = {}
        self.ids = 0  # how many names were made unique

    def lose_power(self, rng: random.Random) -> None:
        """Keep what was synced, and a seeded part of the rest, torn where it falls.

        Each file has its own tear. New names go as a journal has them: the newest first.
        """
        lost_bytes = 0
        for path in list(self.fresh)[rng.randint(0, len(self.fresh)) :]:
            lost_bytes += len(self.files.pop(path).data)
        for path, old in self.replaced.items():
            if path in self.files and rng.random() < 0.5:
                if old is None:
                    del self.files[path]
                else:
                    self.files[path] = old
        for inode in self.files.values():
            before = len(inode.data)
            inode.lose_power(rng)
            lost_bytes += max(0, before - len(inode.data))
        self.fresh.clear()
        self.replaced.clear()
        self.note("disk", self.name, "power cut", lost_bytes)


class DiskFile:
    """One open file; the same shape as `storage.File`."""

    def __init__(self, storage: DiskStorage, path: Path, inode: Inode) -> None:
        self.path = path
        self._storage = storage
        self._inode = inode

    def read_at(self, size: int, position: int) -> bytes:
        self._storage.check(self.path)
        return bytes(self._inode.data[position : position + size])

    def lend(self, size: int, position: int) -> bytes:
        return self.read_at(size, position)

    def write_at(self, buffers: Sequence[Buffer], size: int, position: int) -> None:
        self._storage.check(self.path)
        data = b"".join(buffers)
        self._storage.note("write", str(self.path), position, len(data), zlib.crc32(data))
        self._inode.write(position, data)
        self._inode.modified_ms = self._storage.disk.now_ms()

    def truncate(self, size: int) -> None:
        self._storage.check(self.path)
        self._storage.note("truncate", str(self.path), size)
        self._inode.write(size, None)

    def sync(self) -> None:
        self._storage.check(self.path)
        self._storage.note("sync", str(self.path))
        self._inode.sync()

    @property
    def is_open(self) -> bool:
        return True

    def size(self) -> int:
        return len(self._inode.data)

    def modified_ms(self) -> int:
        return self._inode.modified_ms

    def set_modified_ms(self, time_ms: int) -> None:
        self._inode.modified_ms = time_ms

    def close(self) -> None:
        pass


class DiskStorage:
    """The disk as one process has it; gone with that process. The same shape as `Storage`."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.is_alive = True

    def check(self, path: Path | str) -> None:
        if not self.is_alive:
            raise OSError(errno.EIO, "the process is dead", str(path))

    def note(self, *event: object) -> None:
        self.disk.note("disk", self.disk.name, *event)

    def open(self, path: Path, *, create: bool = False) -> DiskFile:
        self.check(path)
        name = str(path)
        inode = self.disk.files.get(name)
        if inode is None:
            if not create or os.path.dirname(name) not in self.disk.directories:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            inode = self.disk.files[name] = Inode(modified_ms=self.disk.now_ms())
            self.disk.fresh[name] = None
            self.note("create", name)
        return DiskFile(self, path, inode)

    def read(self, path: Path) -> bytes:
        file = self.open(path)
        return file.read_at(file.size(), 0)

    def write_atomic(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self.check(path.parent)
        name, disk = str(path), self.disk
        self.note("replace", name, len(data), zlib.crc32(data), sync)
        old = disk.files.get(name)
        disk.files[name] = Inode(bytearray(data), bytearray(data), modified_ms=disk.now_ms())
        disk.fresh.pop(name, None)
        if sync:
            disk.replaced.pop(name, None)
        else:
            disk.replaced.setdefault(name, old)

    def write_over(self, path: Path, data: bytes) -> None:
        self.open(path, create=True).write_at((data,), len(data), 0)

    def exists(self, path: Path) -> bool:
        self.check(path)
        return str(path) in self.disk.files or self.is_directory(path)

    def names(self, directory: Path) -> list[str]:
        self.check(directory)
        name = str(directory)
        if name not in self.disk.directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        below = name.rstrip("/") + "/"
        all_paths = (*self.disk.files, *self.disk.directories)
        return sorted(
            path[len(below) :]
            for path in all_paths
            if path.startswith(below) and path != below and "/" not in path[len(below) :]
        )

    def is_directory(self, path: Path) -> bool:
        self.check(path)
        return str(path) in self.disk.directories

    def make_directory(self, path: Path) -> None:
        self.check(path)
        for each in (path, *path.parents):
            self.disk.directories.add(str(each))

    def rename(self, source: Path, target: Path) -> None:
        self.check(source)
        old, new, disk = str(source), str(target), self.disk
        self.note("rename", old, new)
        if old in disk.files:
            disk.files[new] = disk.files.pop(old)
            if old in disk.fresh:
                del disk.fresh[old]
                disk.fresh[new] = None
            return
        if old not in disk.directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        for path in [path for path in disk.files if path.startswith(f"{old}/")]:
            disk.files[new + path[len(old) :]] = disk.files.pop(path)
            disk.fresh.pop(path, None)
        disk.directories = {
            new + path[len(old) :] if path == old or path.startswith(f"{old}/") else path
            for path in disk.directories
        }

    def remove(self, path: Path) -> None:
        self.check(path)
        self.note("remove", str(path))
        self.disk.files.pop(str(path), None)
        self.disk.fresh.pop(str(path), None)

    def remove_tree(self, path: Path) -> None:
        for each in [each for each in self.disk.files if each.startswith(f"{path}/")]:
            self.remove(Path(each))
        self.disk.directories = {
            each
            for each in self.disk.directories
            if each != str(path) and not each.startswith(f"{path}/")
        }

    def sync_directory(self, path: Path) -> None:
        self.check(path)
        for names in (self.disk.fresh, self.disk.replaced):
            for each in [each for each in names if os.path.dirname(each) == str(path)]:
                del names[each]

    def unique_id(self) -> str:
        self.disk.ids += 1
        return f"{self.disk.ids:032x}"

    def space(self, path: Path) -> tuple[int, int]:
        return 1 << 40, 1 << 39

    def lock(self, path: Path) -> DiskLock:
        holder = self.disk.locks.get(str(path))
        if holder is not None and holder.is_alive:
            raise LockedFile(f"{path} is locked: another broker uses this folder")
        self.disk.locks[str(path)] = self
        return DiskLock(self.disk, str(path))


class DiskLock:
    """Goes with the process that took it, or when it is released."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locks.pop(self._path, None)
