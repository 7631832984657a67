"""Changes of a directory's entries, and how a power cut undoes those that were not flushed.

A change whose file has changed again since, or that never happened because its process was killed
first, is not undone.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class EntryChange(Protocol):
    """One change of one entry, at `at_ns` of the monotonic clock."""

    @property
    def at_ns(self) -> int: ...
    @property
    def name(self) -> str: ...
    def undo(self, folder: Path) -> None: ...


@dataclass(frozen=True, slots=True)
class Created:
    """A file or folder was created."""

    at_ns: int
    name: str

    def undo(self, folder: Path) -> None:
        path = folder / self.name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Renamed:
    """A file or folder was renamed. `kept` is another name of the file that it replaced."""

    at_ns: int
    name: str
    new: str
    kept: Path | None = None

    def undo(self, folder: Path) -> None:
        old, new = folder / self.name, folder / self.new
        if old.exists() or not new.exists():
            return
        new.rename(old)
        if self.kept is not None:
            os.link(self.kept, new)


@dataclass(frozen=True, slots=True)
class Removed:
    """A file was removed. `kept` is another name of it."""

    at_ns: int
    name: str
    kept: Path | None = None

    def undo(self, folder: Path) -> None:
        path = folder / self.name
        if self.kept is not None and not path.exists():
            os.link(self.kept, path)
