"""DuckDB for judgements of made-up runs: the same question over the same rows is answered once.

Most runs of these tests differ from the healthy one in a table or two. The answer to a query
depends on nothing but its text and the rows of the tables that the text names, so an answer is
stored under a digest of both, for all judgements of one process:

- the digest of evidence is that of its files and schema, of a derived table that of its rows, of a
  kept table that of its query and of the tables that this query names;
- every word of a query that is a table's name counts, so a column of that name only makes the
  answer less shared;
- a table that was made before from the same content is used again, or made, when a new question
  needs it; any other is made at once, so that what cannot be read fails where it fails in DuckDB;
- each table has a schema of its own, and a query's search path are those of the tables that it
  names. Views of them would take DuckDB as long to plan again as the query takes.
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
    """One database for all engines of this process, with a schema for each table."""

    database: duckdb.DuckDBPyConnection
    lock: threading.RLock = field(default_factory=threading.RLock)
    tables: OrderedDict[bytes, str] = field(default_factory=OrderedDict)
    """The schema of each shared table, by the digest of the table's content."""
    engines: int = 0
    """The number of open engines."""
    numbers: Iterator[int] = field(default_factory=count)

    def new_schema(self) -> str:
        """The name of an empty schema."""
        name = f"s{next(self.numbers)}"
        self.database.execute(f"CREATE SCHEMA {name}")
        return name

    def drop(self, schema: str) -> None:
        """Drop a schema with its table."""
        self.database.execute(f"DROP SCHEMA {schema} CASCADE")

    def evict(self) -> None:
        """Drop the tables unused for longest, while no engine uses any."""
        while len(self.tables) > MOST_TABLES and not self.engines:
            self.drop(self.tables.popitem(last=False)[1])


@functools.cache
def store() -> Store:
    return Store(connect(Path(tempfile.gettempdir()), threads=1))


class SharedDuck(Duck):
    """DuckDB that is asked only what it has not answered in this process."""

    def __init__(self, work: Path) -> None:
        self._store = store()
        super().__init__(work, threads=1, database=self._store.database)
        self._store.engines += 1
        self._digests: dict[str, bytes] = {}
        self._unmade: dict[str, tuple[Callable[[], None], frozenset[str], bool]] = {}
        self._schemas: dict[str, str] = {}
        """The schema of each table that was made or found."""
        self._own: dict[str, str] = {}
        """Of those, the schemas of tables that are not shared."""
        self._path: list[str] = []

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with super()._cursor() as cursor:
            if self._path:
                path = ",".join(f"memory.{schema}" for schema in self._path)
                cursor.execute(f"SET search_path = '{path}'")
            yield cursor

    @contextmanager
    def _found_in(self, *first: str, named: frozenset[str]) -> Iterator[None]:
        """Queries find the named tables; new tables are made in the schema `first`."""
        before, self._path = self._path, [*first, *(self._schemas[name] for name in sorted(named))]
        try:
            yield
        finally:
            self._path = before

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
        self._make(named := self._named(query))
        with self._found_in(named=named):
            super().store(query, folder, cut)

    def query(self, query: str) -> list[Row]:
        named = self._named(query)
        digest = self._digest(query, named)
        if digest not in ANSWERS:
            self._make(named)
            with self._found_in(named=named):
                ANSWERS[digest] = super().query(query)
        return [dict(row) for row in ANSWERS[digest]]

    def close(self) -> None:
        super().close()
        with self._store.lock:
            for schema in self._own.values():
                self._store.drop(schema)
            self._store.engines -= 1
            self._store.evict()

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
            self._digests[name] = digest = _hash([name.encode(), *content])
            self._unmade[name] = (make, named, shared)
            if digest not in MADE:
                self._make(frozenset({name}))
                MADE.add(digest)

    def _forget(self, name: str) -> None:
        """Drop what this engine alone has under a name, as it gets other content."""
        self._schemas.pop(name, None)
        if (schema := self._own.pop(name, None)) is not None:
            self._store.drop(schema)

    def _make(self, names: frozenset[str]) -> None:
        with self._store.lock:
            for name in names:
                if name in self._unmade:
                    make, named, shared = self._unmade.pop(name)
                    if not self._find(name):
                        self._fill(name, make, named, shared=shared)

    def _find(self, name: str) -> bool:
        """Use the table of the same content that was made before; whether there is one."""
        schema = self._store.tables.get(self._digests[name])
        if schema is None:
            return False
        self._store.tables.move_to_end(self._digests[name])
        self._schemas[name] = schema
        return True

    def _fill(
        self, name: str, make: Callable[[], None], named: frozenset[str], *, shared: bool
    ) -> None:
        self._make(named)
        schema = self._store.new_schema()
        with self._found_in(schema, named=named):
            make()
        self._schemas[name] = schema
        if shared:
            self._store.tables[self._digests[name]] = schema
        else:
            self._own[name] = schema


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
