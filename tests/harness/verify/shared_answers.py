"""DuckDB for judgements of made-up runs: the same question over the same rows is answered once.

Most runs of these tests differ from the healthy one in a table or two. The answer to a query
depends on nothing but its text and the rows of the tables that the text names, so an answer is
stored under a digest of both, for all judgements of one process:

- the digest of evidence is that of its files and schema, of a derived table that of its rows, of a
  kept table that of its query and of the tables that this query names;
- every word of a query that is a table's name counts, so a column of that name only makes the
  answer less shared;
- a table that was made before from the same content is shown, or made, again when a new question
  needs it; any other is made at once, so that what cannot be read fails where it fails in DuckDB.
"""

from __future__ import annotations

import functools
import hashlib
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from urteil.harness.verify.engines.cuts import Cut
from urteil.harness.verify.engines.engine import (
    LARGE_ROWS,
    Duck,
    Engine,
    connect,
    fits_in_memory,
    open_engine,
)
from urteil.harness.verify.evidence import Row, row_count

WORD = re.compile(r"\w+")
ANSWERS: dict[bytes, list[Row]] = {}
MADE: set[bytes] = set()
"""Digests of tables that DuckDB made without an error."""
MOST_TABLES = 300


@dataclass(slots=True)
class Store:
    """One database for all engines of this process, each with a schema of its own."""

    database: duckdb.DuckDBPyConnection
    lock: threading.RLock = field(default_factory=threading.RLock)
    tables: OrderedDict[bytes, tuple[int, str]] = field(default_factory=OrderedDict)
    """Schema and name of each table in the database, by the digest of its content."""
    opened: set[int] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=count)

    def open(self) -> int:
        """The number of a new schema."""
        number = next(self.numbers)
        self.opened.add(number)
        self.database.execute(f"CREATE SCHEMA s{number}")
        return number

    def close(self, number: int) -> None:
        """Drop the tables unused for longest, and the schemas without any."""
        with self.lock:
            self.opened.discard(number)
            dropped = {number}
            while len(self.tables) > MOST_TABLES and not self.opened:
                _, (schema, name) = self.tables.popitem(last=False)
                self.database.execute(f"DROP TABLE s{schema}.{name}")
                dropped.add(schema)
            for schema in dropped - {schema for schema, _ in self.tables.values()} - self.opened:
                self.database.execute(f"DROP SCHEMA s{schema} CASCADE")


@functools.cache
def store() -> Store:
    return Store(connect(Path(tempfile.gettempdir()), threads=1))


class SharedDuck(Duck):
    """DuckDB that is asked only what it has not answered in this process."""

    def __init__(self, work: Path) -> None:
        self._store = store()
        super().__init__(work, threads=1, database=self._store.database)
        self._schema = self._store.open()
        self._digests: dict[str, bytes] = {}
        self._unmade: dict[str, tuple[Callable[[], None], frozenset[str], bool]] = {}
        self._here: dict[str, str] = {}
        """The names in this engine's schema, each a TABLE or a VIEW."""

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with super()._cursor() as cursor:
            cursor.execute(f"USE memory.s{self._schema}")
            yield cursor

    def view(self, name: str, folder: Path, schema: pa.Schema | None = None) -> None:
        files = sorted(folder.glob("*.parquet"))
        parts = [part for file in files for part in (file.name.encode(), file.read_bytes())]
        content, make = [_text(schema), *parts], super().view
        in_memory = not files or fits_in_memory(files)
        self._plan(name, content, lambda: make(name, folder, schema), shared=in_memory)

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
        return [dict(row) for row in ANSWERS[digest]]

    def close(self) -> None:
        super().close()
        self._store.close(self._schema)

    def _named(self, query: str) -> frozenset[str]:
        return _words(query) & self._digests.keys()

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
        *,
        shared: bool = True,
    ) -> None:
        """Make the table, now or when a question needs it."""
        with self._store.lock:
            self._forget(name)
            self._digests[name] = digest = _hash(content)
            self._unmade[name] = (make, named, shared)
            if digest not in MADE:
                self._make(frozenset({name}))
                MADE.add(digest)

    def _forget(self, name: str) -> None:
        """Drop what this engine has under a name, as it gets other content."""
        if (kind := self._here.pop(name, None)) is not None:
            if self._store.tables.get(self._digests[name]) == (self._schema, name):
                del self._store.tables[self._digests[name]]
            self._store.database.execute(f"DROP {kind} s{self._schema}.{name}")

    def _make(self, names: frozenset[str]) -> None:
        with self._store.lock:
            for name in names:
                if name in self._unmade:
                    make, named, shared = self._unmade.pop(name)
                    if not self._find(name):
                        self._fill(name, make, named, shared=shared)

    def _find(self, name: str) -> bool:
        """Show the table of the same content that another engine made; whether there is one."""
        found = self._store.tables.get(self._digests[name])
        if found is None:
            return False
        self._store.tables.move_to_end(self._digests[name])
        schema, original = found
        query = f"CREATE VIEW s{self._schema}.{name} AS SELECT * FROM s{schema}.{original}"
        self._store.database.execute(query)
        self._here[name] = "VIEW"
        return True

    def _fill(
        self, name: str, make: Callable[[], None], named: frozenset[str], *, shared: bool
    ) -> None:
        self._make(named)
        make()
        self._here[name] = "TABLE" if shared else "VIEW"
        if shared:
            self._store.tables[self._digests[name]] = (self._schema, name)


@functools.lru_cache(maxsize=1_024)
def _words(query: str) -> frozenset[str]:
    return frozenset(WORD.findall(query))


@functools.lru_cache(maxsize=128)
def _text(schema: pa.Schema | None) -> bytes:
    return str(schema).encode()


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
