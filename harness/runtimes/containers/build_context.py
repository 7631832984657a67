"""The build context for the engine: a tar that is identical for identical content."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

IGNORED = {"__pycache__", ".pytest_cache", ".mypy_cache"}


class Context:
    """A build context without this machine's owners, times and permissions, so that the engine's
    cache works across checkouts."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.GNU_FORMAT)  # noqa: SIM115

    def add(self, name: str, path: Path) -> None:
        """One file under `name`."""
        with path.open("rb") as source:
            executable = os.fstat(source.fileno()).st_mode & 0o100
            self._put(
                name, source, os.fstat(source.fileno()).st_size, 0o755 if executable else 0o644
            )

    def add_folder(self, name: str, folder: Path) -> None:
        """Every file below `folder`, under `name`."""
        for path in files(folder):
            self.add(f"{name}/{path.relative_to(folder)}", path)

    def add_text(self, name: str, text: str) -> None:
        data = text.encode()
        self._put(name, io.BytesIO(data), len(data), 0o644)

    def finish(self) -> IO[bytes]:
        """The finished tar, from its beginning. Closing it deletes it."""
        self._tar.close()
        self._file.seek(0)
        return self._file

    def _put(self, name: str, source: IO[bytes], size: int, mode: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, mode
        self._tar.addfile(info, source)


def files(folder: Path) -> Iterator[Path]:
    """Files below `folder` in a fixed order, caches of Python left out."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and not IGNORED & set(path.parts):
            yield path


class Digest:
    """A hash over names and contents."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, name: str, content: bytes) -> None:
        for part in (name.encode(), content):
            self._hash.update(len(part).to_bytes(8, "big") + part)

    def add_folder(self, name: str, folder: Path) -> None:
        for path in files(folder):
            self.add(f"{name}/{path.relative_to(folder)}", path.read_bytes())

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
