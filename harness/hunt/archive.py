"""The archive of all nights: their runs and findings in one SQLite file that survives any kill.

A finding is recognised by its signature: the guarantee and sub-kind, the kinds of faults that were
active at its first record, and its topic. Signatures are compared only within the same target and
the same mutant (or none).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from urteil.harness.hunt.investigated_failure import Failure
from urteil.harness.hunt.job import Job, Row

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
  id INTEGER PRIMARY KEY, at TEXT NOT NULL, scenario TEXT NOT NULL, seed INTEGER NOT NULL,
  target TEXT NOT NULL, mutant TEXT, verdict TEXT NOT NULL, seconds REAL NOT NULL,
  row TEXT NOT NULL, UNIQUE (at, scenario, seed, target, mutant));
CREATE TABLE IF NOT EXISTS signatures (
  run INTEGER NOT NULL REFERENCES runs (id), signature TEXT NOT NULL,
  PRIMARY KEY (run, signature)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
  signature TEXT NOT NULL, target TEXT NOT NULL, mutant TEXT NOT NULL, failure TEXT NOT NULL,
  PRIMARY KEY (signature, target, mutant)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_signature ON signatures (signature);
"""
WAIT_S = 30.0


class KnownSignature(msgspec.Struct, frozen=True, kw_only=True):
    """A signature that earlier runs had: the number of runs, the first one, and its
    investigation."""

    signature: str
    times: int
    first_at: str
    scenario: str
    seed: int
    failure: Failure | None = None


class Archive:
    """The archive at `path`, created when missing. Several nights may write to it at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            db.executescript(_TABLES)

    def add(self, row: Row) -> list[KnownSignature]:
        """Store a run once and atomically. Returns those of its signatures that earlier runs
        had."""
        job = row.job
        key = (row.at, job.scenario, job.seed, job.target, job.mutant)
        with self._open() as db, db:
            db.execute("BEGIN IMMEDIATE")
            stored = db.execute(
                "SELECT id FROM runs WHERE at = ? AND scenario = ? AND seed = ? AND target = ? "
                "AND mutant IS ?",
                key,
            ).fetchone()
            if stored:
                return list(_known_signatures(db, row, before=stored[0]))
            run_id = db.execute(
                "INSERT INTO runs (at, scenario, seed, target, mutant, verdict, seconds, row) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, row.verdict, row.seconds, msgspec.json.encode(row).decode()),
            ).lastrowid
            db.executemany(
                "INSERT INTO signatures VALUES (?, ?)",
                [(run_id, signature) for signature in dict.fromkeys(row.signatures)],
            )
            return list(_known_signatures(db, row, before=run_id or 0))

    def keep(self, failure: Failure) -> None:
        """Store the investigation of a signature."""
        job = failure.job
        with self._open() as db, db:
            db.execute(
                "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)",
                (failure.signature, job.target, job.mutant or "", msgspec.json.encode(failure)),
            )

    def failure(self, signature: str, job: Job) -> Failure | None:
        """The investigation of a signature on the target and mutant of `job`."""
        with self._open() as db:
            return _failure(db, signature, job)

    def last_played(self, job: Job) -> str:
        """The time at which the scenario was last played on the target, with the mutant of `job`;
        empty for never."""
        with self._open() as db:
            newest = db.execute(
                "SELECT max(at) FROM runs WHERE scenario = ? AND target = ? AND mutant IS ?",
                (job.scenario, job.target, job.mutant),
            ).fetchone()
        return str(newest[0] or "")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=WAIT_S)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            yield db


def _known_signatures(db: sqlite3.Connection, row: Row, *, before: int) -> Iterator[KnownSignature]:
    job = row.job
    for signature in dict.fromkeys(row.signatures):
        earlier = db.execute(
            "SELECT count(*), min(r.at), r.scenario, r.seed FROM signatures s JOIN runs r "
            "ON r.id = s.run WHERE s.signature = ? AND r.target = ? AND r.mutant IS ? AND r.id < ?",
            (signature, job.target, job.mutant, before),
        ).fetchone()
        if earlier[0]:
            yield KnownSignature(
                signature=signature,
                times=earlier[0],
                first_at=earlier[1],
                scenario=earlier[2],
                seed=earlier[3],
                failure=_failure(db, signature, job),
            )


def _failure(db: sqlite3.Connection, signature: str, job: Job) -> Failure | None:
    stored = db.execute(
        "SELECT failure FROM failures WHERE signature = ? AND target = ? AND mutant = ?",
        (signature, job.target, job.mutant or ""),
    ).fetchone()
    return None if stored is None else msgspec.json.decode(stored[0], type=Failure)
