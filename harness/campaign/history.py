"""All nights' runs and what was found in them, in one SQLite file that survives any kill.

A finding is recognised by its signature: guarantee and sub-kind, the kinds of faults that were
active at its first record, and the topic it was found in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from urteil.harness.campaign.job import Job, Row

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
  id INTEGER PRIMARY KEY, at TEXT NOT NULL, scenario TEXT NOT NULL, seed INTEGER NOT NULL,
  target TEXT NOT NULL, mutant TEXT, verdict TEXT NOT NULL, seconds REAL NOT NULL,
  row TEXT NOT NULL, UNIQUE (at, scenario, seed, target, mutant));
CREATE TABLE IF NOT EXISTS signatures (
  run INTEGER NOT NULL REFERENCES runs (id), signature TEXT NOT NULL,
  PRIMARY KEY (run, signature)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_signature ON signatures (signature);
"""
WAIT_S = 30.0


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A signature that was met before: how often, and in which run first."""

    signature: str
    times: int
    first_at: str
    scenario: str
    seed: int


class History:
    """The file at `path`, made when it is missing; several nights may write to it at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            db.executescript(_TABLES)

    def add(self, row: Row) -> list[Seen]:
        """Keep a run, whole or not at all; which of its signatures earlier runs had."""
        job = row.job
        with self._open() as db, db:
            seen = list(_seen(db, row.signatures))
            kept = db.execute(
                "INSERT OR IGNORE INTO runs (at, scenario, seed, target, mutant, verdict, seconds, "
                "row) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (row.at, job.scenario, job.seed, job.target, job.mutant, row.verdict, row.seconds,
                 msgspec.json.encode(row).decode()),
            )  # fmt: skip
            if kept.rowcount:
                db.executemany(
                    "INSERT INTO signatures VALUES (?, ?)",
                    [(kept.lastrowid, one) for one in dict.fromkeys(row.signatures)],
                )
        return seen

    def last_played(self, job: Job) -> str:
        """When a scenario was last played on a target (with a mutant), empty for never."""
        with self._open() as db:
            found = db.execute(
                "SELECT max(at) FROM runs WHERE scenario = ? AND target = ? AND mutant IS ?",
                (job.scenario, job.target, job.mutant),
            ).fetchone()
        return str(found[0] or "")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=WAIT_S)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            yield db


def _seen(db: sqlite3.Connection, signatures: Sequence[str]) -> Iterator[Seen]:
    for signature in dict.fromkeys(signatures):
        found = db.execute(
            "SELECT count(*), min(r.at), r.scenario, r.seed FROM signatures s JOIN runs r "
            "ON r.id = s.run WHERE s.signature = ?",
            (signature,),
        ).fetchone()
        if found[0]:
            yield Seen(signature=signature, times=found[0], first_at=found[1], scenario=found[2],
                       seed=found[3])  # fmt: skip
