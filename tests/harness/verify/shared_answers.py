"""DuckDB for judgements of made-up runs: the same question over the same rows is answered once.

Most runs of these tests differ from the healthy one in a few columns. The answer to a query depends
on nothing but its text and, of the tables that the text names, the columns that it names and the
order of the rows. An answer is stored under a digest of these, for all judgements of one process:

- a table is made once for each content: of evidence that is its files and schema, of a derived
  table its rows, of a kept table its query and the columns that this query reads;
- each column of a made table has a digest of its values, as DuckDB holds them;
- every word of a query that is a name of a table or column counts, and a star reads every table of
  its SELECT, so other uses of such a word only make the answer less shared;
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
from collections.abc import Callable, Iterator, Mapping
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

Columns = dict[str, bytes]
"""The digest of each column's type and values, by its name."""

WORD = re.compile(r"\w+")
ANSWERS: dict[bytes, list[Row]] = {}
STAR = re.compile(r"(?:\bSELECT(?:\s+DISTINCT)?\s+|,\s*)\*|\b(\w+)\.\*", re.IGNORECASE)
HINT = re.compile(r"/\*.*?\*/", re.DOTALL)
EXACT = frozenset({"BIGINT", "INTEGER", "VARCHAR", "BOOLEAN", "DOUBLE"})
"""Types whose values Arrow has as DuckDB has them."""
MADE: dict[bytes, Columns] = {}
"""The columns of each table that DuckDB made without an error, by the digest of its content."""
ROWS = "number of rows"
"""Beside the columns of a table; no column has this name."""
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

    def __init__(self, work: Path, *, threads: int = 1) -> None:
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
        contents = [part for file in files for part in (file.name.encode(), file.read_bytes())]
        content, make = [_text(schema), *contents], super().view
        in_memory = not files or fits_in_memory(files)
        none = schema.empty_table() if schema and not files else None
        self._plan(name, content, lambda: make(name, folder, schema), rows=none, shared=in_memory)

    def table(self, name: str, rows: pa.Table) -> None:
        make = super().table
        self._plan(name, [_stream(rows)], lambda: make(name, rows), rows=rows)

    def keep(self, name: str, query: str, cut: Cut | None = None) -> None:
        named, make = self._named(query), super().keep
        contents = [self._digest(query, named), repr(cut).encode()]
        self._plan(name, contents, lambda: make(name, query, cut), named - {name})

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
        """The digest of a query and of all that it reads."""
        words, starred = _words(query), _starred(query)
        contents = [query.encode()]
        for name in sorted(named):
            columns = MADE[self._digests[name]]
            contents += [name.encode(), ",".join(columns).encode()]
            contents += [
                columns[column] for column in columns if column in words or name in starred
            ]
            contents.append(columns[ROWS])
        return _hash(contents)

    def _plan(
        self,
        name: str,
        content: list[bytes],
        make: Callable[[], None],
        named: frozenset[str] = frozenset(),
        *,
        rows: pa.Table | None = None,
        shared: bool = True,
    ) -> None:
        """Make the table, which may be known to have these `rows`, now or when a question needs
        it."""
        with self._store.lock:
            self._forget(name)
            self._digests[name] = digest = _hash([name.encode(), *content])
            self._unmade[name] = (make, named, shared)
            if digest not in MADE:
                self._make(frozenset({name}))
                known = (
                    None if rows is None else {field.name: str(field.type) for field in rows.schema}
                )
                MADE[digest] = (
                    _columns(known, rows) if known else self._columns(name, digest, shared=shared)
                )

    def _columns(self, name: str, digest: bytes, *, shared: bool) -> Columns:
        """The columns of a made table; those of files, and of types that Arrow lacks, have the
        digest of the whole table."""
        source = f"SELECT * FROM memory.{self._schemas[name]}.{name}"
        with self._cursor() as cursor:
            relation = cursor.sql(source if shared else f"{source} LIMIT 0")
            kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
            rows = relation.to_arrow_table()
        columns = _columns(kinds, rows)
        if not shared:
            return {column: _hash([columns[column], digest]) for column in columns}
        vague = [column for column, kind in kinds.items() if kind not in EXACT]
        return columns | {column: _hash([columns[column], digest]) for column in vague}

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


@functools.lru_cache(maxsize=1_024)
def _starred(query: str) -> frozenset[str]:
    """Names of tables whose columns a query may read without naming them."""
    text, names = HINT.sub(" ", query), set[str]()
    if re.search(r"\bNATURAL\b", text, re.IGNORECASE):
        return _words(query)
    for star in STAR.finditer(text):
        if alias := star[1]:
            names |= {alias, *re.findall(rf"(\w+)\s+(?:AS\s+)?{alias}\b", text)}
        else:
            names |= _words(_rest_of_select(text, star.end()))
    return frozenset(names)


def _rest_of_select(text: str, begin: int) -> str:
    """The text up to the parenthesis that ends the SELECT at `begin`."""
    depth = 0
    for position in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth < 0:
            return text[begin:position]
    return text[begin:]


def _columns(kinds: Mapping[str, str], rows: pa.Table) -> Columns:
    """The digests of columns of these types."""
    columns = {
        column: _hash([kind.encode(), _stream(rows.select([column]))])
        for column, kind in kinds.items()
    }
    return columns | {ROWS: _hash([b"%d" % rows.num_rows])}


def _stream(rows: pa.Table) -> bytes:
    """The rows in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


@functools.lru_cache(maxsize=128)
def _text(schema: pa.Schema | None) -> bytes:
    return str(schema).encode()


def _hash(contents: list[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in contents:
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
