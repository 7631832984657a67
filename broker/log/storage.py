"""Access to the file system: all file operations of `broker/log` go through `Storage`.

Tests pass a subclass of `Storage` that simulates a disk or its faults to `LogManager`. All errors
are OSError, as the system reports them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

LENT_FROM_BYTES = 64 * 1024
"""Smaller ranges are read into memory: for them sendfile costs more than the copy."""
SENT_AT_ONCE_BYTES = 1 << 20

DEVICE_ERRORS = frozenset({errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.EUCLEAN})

_IOV_MAX = 1000


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Add the file's name to errors of calls on descriptors."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


class FileRange:
    """A range of `size` bytes from `position` that stays in the file until it is sent.

    It has its own descriptor: the segment may rename, remove or close the file meanwhile. After a
    truncation of the file fewer bytes are sent.
    """

    __slots__ = ("_fd", "on_failure", "position", "size")

    def __init__(self, fd: int, size: int, position: int) -> None:
        self._fd = fd
        self.size = size
        self.position = position
        self.on_failure: Callable[[OSError], None] | None = None

    def __del__(self) -> None:
        os.close(self._fd)

    def __len__(self) -> int:
        return self.size

    def send(self, to_fd: int, done: int) -> int:
        """Send the bytes after the first `done` to a socket; return how many it accepted, 0 if the
        file was truncated. Raises BlockingIOError when the socket is full.

        `on_failure` is called with an error of the device, not of the socket, before it is raised.
        """
        count = min(self.size - done, SENT_AT_ONCE_BYTES)
        try:
            return os.sendfile(to_fd, self._fd, self.position + done, count)
        except OSError as error:
            if error.errno in DEVICE_ERRORS and self.on_failure is not None:
                self.on_failure(error)
            raise

    def read(self, done: int) -> bytes:
        """Read the bytes after the first `done`, at most SENT_AT_ONCE_BYTES; empty if the file was
        truncated. Raises OSError after a call of `on_failure`, as `send` does."""
        count = min(self.size - done, SENT_AT_ONCE_BYTES)
        try:
            return os.pread(self._fd, count, self.position + done)
        except OSError as error:
            if error.errno in DEVICE_ERRORS and self.on_failure is not None:
                self.on_failure(error)
            raise


class File:
    """One open file for positioned reads and writes; positions and sizes are in bytes."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def lend(self, size: int, position: int) -> bytes | FileRange:
        """Like `read_at`, but a large range stays in the file."""
        if size < LENT_FROM_BYTES:
            return self.read_at(size, position)
        return FileRange(os.dup(self._fd), size, position)

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        topic, read_bytes = [data], len(data)
        while read_bytes < size:
            more = os.pread(self._fd, size - read_bytes, position + read_bytes)
            if not more:
                break
            topic.append(more)
            read_bytes += len(more)
        return b"".join(topic)

    def write_at(self, buffers: Sequence[Buffer], size: int, position: int) -> None:
        """Write all buffers, `size` bytes together, at `position`: one call when it fits."""
        if len(buffers) > _IOV_MAX:
            buffers = [b"".join(buffers)]
        try:
            written = os.pwritev(self._fd, buffers, position)
            if written == size:
                return
            rest = memoryview(b"".join(buffers))
            while written < size:
                written += os.pwrite(self._fd, rest[written:], position + written)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def truncate(self, size: int) -> None:
        with _name_file_in_errors(self.path):
            os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """Sync the file's data and size to the device."""
        with _name_file_in_errors(self.path):
            os.fdatasync(self._fd)

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def modified_ms(self) -> int:
        return os.fstat(self._fd).st_mtime_ns // 1_000_000

    def set_modified_ms(self, time_ms: int) -> None:
        """Set the modification time, which retention reads."""
        with _name_file_in_errors(self.path):
            os.utime(self._fd, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class LockedFile(OSError):
    """Another process holds the lock."""


class DirectoryLock:
    """An exclusive lock on a file, compatible with Java's FileChannel.tryLock."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._fd)
            raise LockedFile(f"{path} is locked: another broker uses this folder") from error
        except OSError:
            os.close(self._fd)
            raise

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Storage:
    """The real file system."""

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and writing. Raises FileNotFoundError unless `create`."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return File(path, os.open(path, flags, 0o644))

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def write_atomic(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Replace the file atomically: after a crash it has the old or the new content."""
        part = path.with_name(path.name + ".tmp")
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            with _name_file_in_errors(part):
                rest = memoryview(data)
                while rest:  # a disk that fills up accepts a part and fails at the next write
                    rest = rest[os.write(fd, rest) :]
                if sync:
                    os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(part, path)
        if sync:
            self.sync_directory(path.parent)

    def write_over(self, path: Path, data: bytes) -> None:
        """Overwrite a small file in place, in one call and without a sync. A killed process leaves
        the old or the new content; a power cut may leave a mixture.

        This costs a tenth of a replacement, for which some file systems write to the device.
        """
        file = self.open(path, create=True)
        try:
            file.write_at((data,), len(data), 0)
        finally:
            file.close()

    def exists(self, path: Path) -> bool:
        return path.exists()

    def names(self, directory: Path) -> list[str]:
        """The names in a directory, sorted: the order of the system must not matter."""
        return sorted(os.listdir(directory))

    def is_directory(self, path: Path) -> bool:
        return path.is_dir()

    def make_directory(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def rename(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file if it is there."""
        path.unlink(missing_ok=True)

    def remove_tree(self, path: Path) -> None:
        if path.exists():
            shutil.rmtree(path)

    def sync_directory(self, path: Path) -> None:
        """Make creations, renames and removals in a directory durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def unique_id(self) -> str:
        """32 hexadecimal digits for the name of a folder; no two calls return the same."""
        return uuid.uuid4().hex

    def space(self, path: Path) -> tuple[int, int]:
        """(size, usable free space) of the volume of `path`, in bytes."""
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def lock(self, path: Path) -> DirectoryLock:
        """Lock a file. Raises LockedFile when another process holds the lock."""
        return DirectoryLock(path)
