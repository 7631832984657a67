"""DuckDB for judgements of made-up runs: the same question over the same rows is answered once.

Most runs of these tests differ from the healthy one in a table or two. The answer to a query
depends on nothing but its text and the rows of the tables that the text names, so an answer is
stored under a digest of both, for all judgements of one process:

- the digest of evidence is that of its files and schema, of a derived table that of its rows, of a
  kept table that of its query and of the tables that this query names;
- every word of a query that is a table's name counts, so a column of that name only makes the
  answer less shared;
- a table that was made before from the same content is made again when a new question needs it; any
  other is made at once, so that what cannot be read fails where it fails in DuckDB.
"""

from __future__ import annotations

import copy
import hashlib
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from urteil.harness.verify.engines.cuts import Cut
from urteil.harness.verify.engines.engine import LARGE_ROWS, Duck, Engine, open_engine
from urteil.harness.verify.evidence import Row, row_count

WORD = re.compile(r"\w+")
ANSWERS: dict[bytes, list[Row]] = {}
MADE: set[bytes] = set()
"""Digests of tables that DuckDB made without an error."""


class SharedDuck(Duck):
    """DuckDB that is asked only what it has not answered in this process."""

    def __init__(self, work: Path) -> None:
        super().__init__(work, threads=1)
        self._lock = threading.RLock()
        self._digests: dict[str, bytes] = {}
        self._unmade: dict[str, tuple[Callable[[], None], frozenset[str]]] = {}

    def view(self, name: str, folder: Path, schema: pa.Schema | None = None) -> None:
        parts = [part for file in sorted(folder.glob("*.parquet"))
                 for part in (file.name.encode(), file.read_bytes())]  # fmt: skip
        make = super().view
        self._plan(name, [str(schema).encode(), *parts], lambda: make(name, folder, schema))

    def table(self, name: str, rows: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        make = super().table
        self._plan(name, [sink.getvalue().to_pybytes()], lambda: make(name, rows))

    def keep(self, name: str, query: str, cut: Cut | None = None) -> None:
        named, make = self._named(query), super().keep
        parts = [self._digest(query, named), repr(cut).encode()]
        self._plan(name, parts, lambda: make(name, query, cut), named - {name})

    def store(self, query: str, folder: Path, cut: Cut | None = None) -> None:
        self._make(self._named(query))
        super().store(query, folder, cut)

    def query(self, query: str) -> list[Row]:
        named = self._named(query)
        digest = self._digest(query, named)
        if digest not in ANSWERS:
            self._make(named)
            ANSWERS[digest] = super().query(query)
        return copy.deepcopy(ANSWERS[digest])

    def _named(self, query: str) -> frozenset[str]:
        return frozenset(WORD.findall(query)) & self._digests.keys()

    def _digest(self, query: str, named: frozenset[str]) -> bytes:
        parts = [query.encode()]
        for name in sorted(named):
            parts += [name.encode(), self._digests[name]]
        return _hash(parts)

    def _plan(
        self,
        name: str,
        content: list[bytes],
        make: Callable[[], None],
        named: frozenset[str] = frozenset(),
    ) -> None:
        """Make the table, now or when a question needs it."""
        with self._lock:
            self._digests[name] = digest = _hash(content)
            self._unmade[name] = (make, named)
            if digest not in MADE:
                self._make(frozenset({name}))
                MADE.add(digest)

    def _make(self, names: frozenset[str]) -> None:
        with self._lock:
            for name in names:
                if name in self._unmade:
                    make, named = self._unmade.pop(name)
                    self._make(named)
                    make()


def _hash(parts: list[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def open_shared(
    engine: str, run_dir: Path, work: Path, *, master: str | None = None, session: Any = None
) -> Engine:
    """As `open_engine`, with the answers of this process for DuckDB."""
    if engine != "duckdb":
        return open_engine(engine, run_dir, work, master=master, session=session)
    rows = sum(row_count(run_dir, table) for table in ("sends", "reads", "replicas"))
    assert rows <= LARGE_ROWS, "a run this large is stored as files"
    return SharedDuck(work)
