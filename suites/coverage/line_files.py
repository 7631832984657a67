"""Files of marks: one for each source file and digest, with one byte for each line.

Several lives of a broker, and several brokers, may map the same files: marks are only ever set.
"""

from __future__ import annotations

import mmap
import zlib
from pathlib import Path

_folder = Path()


def set_folder(folder: Path) -> None:
    """Open the files of modules that are imported from now on in `folder`, which is created."""
    global _folder
    folder.mkdir(parents=True, exist_ok=True)
    _folder = folder


def digest_of(source: str) -> str:
    """Distinguishes versions of a source file."""
    return f"{zlib.crc32(source.encode()):08x}"


def marks_path(folder: Path, name: str, digest: str) -> Path:
    return folder / f"{name.replace('/', '.')}.{digest}"


def open_marks(name: str, digest: str, size: int) -> mmap.mmap:
    """The marks of a source file, shared with every process that opened them."""
    with marks_path(_folder, name, digest).open("a+b") as file:
        file.truncate(size)
        return mmap.mmap(file.fileno(), size)
