"""The coverage table: which scenario executes which line of the broker, in one SQLite file.

Rows belong to a version of a source file, its digest. A scenario that is played again adds to the
lines of the same version, and replaces those of an older one.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

SIMULATION = "simulation"
"""The row of the simulation among those of scenarios."""
_TABLE = """
CREATE TABLE IF NOT EXISTS lines (
  file TEXT NOT NULL, scenario TEXT NOT NULL, digest TEXT NOT NULL, lines BLOB NOT NULL,
  PRIMARY KEY (file, scenario)) WITHOUT ROWID
"""
_WAIT_S = 30.0


class CoverageTable:
    """The table at `path`, created when missing. Several runs may add to it at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            db.execute(_TABLE)

    def add(self, scenario: str, files: Mapping[str, tuple[str, list[int]]]) -> None:
        """Add the executed lines of a run, by source file with its digest."""
        with self._open() as db, db:
            db.execute("BEGIN IMMEDIATE")
            for file, (digest, lines) in files.items():
                stored = db.execute(
                    "SELECT lines FROM lines WHERE file = ? AND scenario = ? AND digest = ?",
                    (file, scenario, digest),
                ).fetchone()
                known = set() if stored is None else set(_decode(stored[0]))
                encoded = msgspec.json.encode(sorted(known | set(lines)))
                db.execute(
                    "INSERT OR REPLACE INTO lines VALUES (?, ?, ?, ?)",
                    (file, scenario, digest, encoded),
                )

    def scenarios_by_line(self, file: str, digest: str) -> dict[int, list[str]]:
        """The scenarios that execute each line of that version; lines without any are absent."""
        found: defaultdict[int, list[str]] = defaultdict(list)
        with self._open() as db:
            rows = db.execute(
                "SELECT scenario, lines FROM lines WHERE file = ? AND digest = ? ORDER BY scenario",
                (file, digest),
            )
            for scenario, lines in rows:
                for line in _decode(lines):
                    found[line].append(scenario)
        return dict(found)

    def scenarios(self) -> list[str]:
        """The scenarios whose lines are known, for any version."""
        with self._open() as db:
            rows = db.execute("SELECT DISTINCT scenario FROM lines ORDER BY scenario").fetchall()
        return [row[0] for row in rows]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=_WAIT_S)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            yield db


def _decode(lines: bytes) -> list[int]:
    return msgspec.json.decode(lines, type=list[int])


def line_ranges(lines: list[int]) -> str:
    """Sorted lines as `3, 7-9`."""
    ranges: list[list[int]] = []
    for line in lines:
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)
