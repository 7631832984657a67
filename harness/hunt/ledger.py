"""The ledger of a campaign: one JSON line for each run. Written lines survive a kill."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from urteil.harness.hunt.job import Job, Row

T = TypeVar("T", bound=msgspec.Struct)


class Lines(Generic[T]):
    """The rows of one type in the file at `path`. A line that a kill cut short counts as a run that
    was not played."""

    def __init__(self, path: Path, row_type: type[T]) -> None:
        self._path = path
        self.rows: list[T] = []
        if path.exists():
            self.rows = list(_read(path.read_bytes().splitlines(), row_type))
            self._mend()

    def add(self, row: T) -> None:
        self.rows.append(row)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")

    def _mend(self) -> None:
        """Remove a line that was cut short, so that the next row begins a line of its own."""
        part = self._path.with_name(self._path.name + ".part")
        part.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in self.rows))
        part.replace(self._path)


class Ledger(Lines[Row]):
    """The runs of a campaign."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Row)

    def find(self, job: Job) -> Row | None:
        """The row of a job that was already played."""
        return next((row for row in self.rows if row.job == job), None)


def read_ledger(path: Path) -> list[Row]:
    """The rows of a ledger that a campaign may be writing now."""
    return list(_read(path.read_bytes().splitlines(), Row))


def _read(lines: Iterable[bytes], row_type: type[T]) -> Iterable[T]:
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=row_type)
        except msgspec.DecodeError:
            continue
