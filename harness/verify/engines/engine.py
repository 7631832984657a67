"""The engines that run the checks: Spark, and DuckDB with the same SQL translated."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.tables import DERIVED, Derived
from urteil.harness.verify.engines import spark
from urteil.harness.verify.engines.cuts import Cut
from urteil.harness.verify.engines.dialect import NULL_ORDER, to_duckdb
from urteil.harness.verify.evidence import Row


class Engine(Protocol):
    """Runs Spark SQL over views of Parquet folders. All methods may be called from any thread."""

    name: str
    work: Path
    """Its own folder, in that of the run."""
    scatter: str
    """Clause that brings rows of one bucket together before the big aggregation; may be empty."""

    gather: str
    """The same for rows of one value."""

    versions: dict[str, str]
    """What answers, for the `versions` of a result."""

    workers: int
    """How many questions it answers side by side."""

    def view(self, name: str, folder: Path, schema: pa.Schema | None = None) -> None:
        """Make `folder`'s Parquet files a view; with none there, an empty view of `schema`."""
        ...

    def table(self, name: str, rows: pa.Table) -> None:
        """Make `rows` a table."""
        ...

    def keep(self, name: str, query: str, cut: Cut | None = None) -> None:
        """Keep the answer to `query` as a table, for as long as this engine is open. Where there is
        a `cut`, it may be answered in parts."""
        ...

    def store(self, query: str, folder: Path) -> None:
        """Write the answer to `query` as Parquet in `folder`."""
        ...

    def query(self, query: str) -> list[Row]:
        """All rows of the answer."""
        ...

    def interrupt(self) -> None:
        """Let what it is asked now fail, from another thread."""
        ...

    def close(self) -> None:
        """Give back what this engine took; a session that the caller gave stays open."""
        ...


_OPEN: WeakSet[Engine] = WeakSet()
"""Engines of this process that were not closed."""


def interrupt(run_dir: Path) -> None:
    """Let every question about this run fail that an engine is still busy with."""
    for engine in list(_OPEN):
        if engine.work.resolve().is_relative_to(run_dir.resolve()):
            engine.interrupt()


def open_views(engine: Engine, run_dir: Path, derived: Derived) -> None:
    """Every table of the evidence and every derived one by its name."""
    for table, schema in SCHEMAS.items():
        engine.view(table, run_dir / "evidence" / table, schema)
    for table in DERIVED:
        engine.table(table, derived.arrow(table))


KEPT_ROWS = 50_000
"""Tables up to this many rows are kept in DuckDB's memory, not read anew for every question."""

_XXHASH64 = "CREATE MACRO xxhash64(x) AS CAST(hash(x) >> 1 AS BIGINT)"
"""A hash as Spark has one, though of another value."""

FEW_ROWS = 5_000
"""Up to so many rows of evidence, starting threads takes longer than they save."""

LARGE_ROWS = 10_000_000
"""Beyond so many rows of evidence DuckDB's answers are kept as files: of those, a question reads
the columns it needs, where tables that outgrew the memory are written and read again whole."""


def memory_mb() -> int:
    """What DuckDB may take: a twelfth of this machine's memory, 1 GB at least. More is spilled."""
    return max(1024, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 12 // 2**20)


class Duck:
    """Embedded DuckDB, for so many rows of evidence; it lives in memory and spills to `work`."""

    name = "duckdb"
    scatter = ""
    gather = ""

    def __init__(
        self,
        work: Path,
        *,
        threads: int = 2,
        rows: int = 0,
        database: duckdb.DuckDBPyConnection | None = None,
    ) -> None:
        """`database` is one that others use, too; without it the engine opens its own."""
        work.mkdir(parents=True, exist_ok=True)
        self._connection = database.cursor() if database else connect(work, threads=threads)
        self.workers = threads
        self.versions = {"duckdb": duckdb.__version__}
        self._asked: set[duckdb.DuckDBPyConnection] = set()
        self.work = work
        self._large = rows > LARGE_ROWS
        _OPEN.add(self)

    def view(self, name: str, folder: Path, schema: pa.Schema | None = None) -> None:
        files = sorted(folder.glob("*.parquet"))
        relation = f"read_parquet('{_quote(folder)}/*.parquet')"
        columns = [f'CAST("{f.name}" AS {_SPARK[f.type]}) AS "{f.name}"' for f in schema or ()]
        kind = "TABLE" if fits_in_memory(files) else "VIEW"
        source = f"SELECT {', '.join(columns) or '*'} FROM {relation}"
        query = f"CREATE OR REPLACE {kind} {name} AS {source}" if files else ""
        with self._cursor() as cursor:
            cursor.execute(query or _empty(name, schema or ()))

    def table(self, name: str, rows: pa.Table) -> None:
        with self._cursor() as cursor:
            if not rows.num_rows:
                cursor.execute(_empty(name, rows.schema))
                return
            cursor.register("given_rows", rows)
            cursor.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given_rows")
            cursor.unregister("given_rows")

    def keep(self, name: str, query: str, cut: Cut | None = None) -> None:
        if self._large:
            self.store(query, self.work / name, cut)
            self.view(name, self.work / name)
            return
        with self._cursor() as cursor:
            cursor.execute(parse(cursor, f"CREATE OR REPLACE TABLE {name} AS {query}"))

    def store(self, query: str, folder: Path, cut: Cut | None = None) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with self._cursor() as cursor:
            for number, _ in enumerate(cut.iterate_parts(cursor) if cut else [None]):
                target = f"{_quote(folder)}/part-{number}.parquet"
                cursor.execute(f"COPY ({to_duckdb(query)}) TO '{target}'")

    def query(self, query: str) -> list[Row]:
        with self._cursor() as cursor:
            cursor.execute(parse(cursor, query))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own to the database, for one thread."""
        cursor = self._connection.cursor()
        self._asked.add(cursor)
        try:
            yield cursor
        finally:
            self._asked.discard(cursor)
            cursor.close()

    def interrupt(self) -> None:
        for cursor in self._asked.copy():
            with suppress(duckdb.Error):  # one that has just ended
                cursor.interrupt()

    def close(self) -> None:
        _OPEN.discard(self)
        self._connection.close()


def connect(work: Path, *, threads: int) -> duckdb.DuckDBPyConnection:
    """A new database in memory, which spills to `work`, and speaks as our queries expect it."""
    limits = {"threads": threads, "memory_limit": f"{memory_mb()}MiB"}
    spill = {"temp_directory": str(work / "spill"), "default_null_order": NULL_ORDER}
    connection = duckdb.connect(config=limits | spill)
    connection.execute(_XXHASH64)
    return connection


def fits_in_memory(files: Sequence[Path]) -> bool:
    """Whether DuckDB keeps the rows of these files in its memory."""
    return _rows(files) <= KEPT_ROWS


def _empty(name: str, schema: Iterable[pa.Field]) -> str:
    columns = ", ".join(f'"{field.name}" {_SPARK[field.type]}' for field in schema)
    return f"CREATE OR REPLACE TABLE {name} ({columns})"


_PARSED: dict[str, duckdb.Statement] = {}
MOST_PARSED = 512


def parse(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    """`query` as DuckDB runs it, on any connection. Parsing is a third of what a question of few
    rows takes, and the canary asks every one of them again."""
    statement = _PARSED.get(query)
    if statement is None:
        if len(_PARSED) >= MOST_PARSED:
            _PARSED.clear()
        (statement,) = connection.extract_statements(to_duckdb(query))
        _PARSED[query] = statement
    return statement


def _rows(files: Sequence[Path]) -> int:
    return sum(int(evidence.footer(file).num_rows) for file in files)


def _quote(folder: Path) -> str:
    return str(folder).replace("'", "''")


LOCAL_ROWS = 2_000
"""Tables below this many rows are handed to Spark with the query, not as files."""


class Spark:
    """A Spark session, ours or the caller's, set up for a run of `rows`.

    Small runs live in memory, each table in a single partition, so that a query is few tasks
    without a shuffle, a broadcast or a file: there, starting those is what takes the time.
    """

    name = "spark"
    scatter = "DISTRIBUTE BY bucket"
    gather = "DISTRIBUTE BY slots.value_id"
    workers = 2

    def __init__(self, session: Any, work: Path, *, owned: bool, rows: int = 0) -> None:
        self._session = session
        self.work = work
        _OPEN.add(self)
        self._owned = owned
        self._kept: list[Any] = []
        self._large = rows >= spark.LARGE_ROWS
        self.versions = spark.versions(session)
        spark.fit(session, rows=rows)

    def view(self, name: str, folder: Path, schema: pa.Schema | None = None) -> None:
        self._open(name, folder, _columns(schema), LOCAL_ROWS, schema)

    def table(self, name: str, rows: pa.Table) -> None:
        folder = self.work / name
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, folder / "part-0.parquet")
        self.view(name, folder, rows.schema)

    def keep(self, name: str, query: str, cut: Cut | None = None) -> None:
        folder = self.work / name
        self._open(name, folder, self.store(query, folder), LOCAL_ROWS if self._large else 0)

    def store(self, query: str, folder: Path) -> Any:
        spark.compile_plans(self._session, True)
        answer = self._session.sql(query)
        answer.write.mode("overwrite").parquet(str(folder))
        spark.compile_plans(self._session, self._large)
        return answer.schema

    def _open(
        self, name: str, folder: Path, kinds: Any, local: int, schema: pa.Schema | None = None
    ) -> None:
        """Below `local` rows the planner is given them; a large run is spared joins with none."""
        files = sorted(folder.glob("*.parquet"))
        rows = _rows(files)
        if not rows:
            frame = self._session.createDataFrame([], kinds)
        elif rows < local:
            frame = self._session.createDataFrame(pq.read_table(files, schema=schema))
        else:
            frame = self._session.read.schema(kinds).parquet(str(folder))
        if self._large:
            frame = frame if rows else frame.where("FALSE")
        else:
            frame = frame.coalesce(1)
            if rows >= local:
                self._kept.append(frame.cache())
        frame.createOrReplaceTempView(name)

    def query(self, query: str) -> list[Row]:
        return [row.asDict() for row in self._session.sql(query).collect()]

    def interrupt(self) -> None:
        _OPEN.discard(self)
        spark.abandon(self._session)

    def close(self) -> None:
        _OPEN.discard(self)
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()
        if self._owned:
            self._session.stop()


def _columns(schema: pa.Schema | None) -> str:
    return ", ".join(f"`{f.name}` {_SPARK[f.type]}" for f in schema or ())


_SPARK = {
    pa.string(): "STRING",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
}


def open_engine(
    engine: str, run_dir: Path, work: Path, *, master: str | None = None, session: Any = None
) -> Engine:
    """The engine by name: `duckdb`, or `spark` on `session`, else on one of its own."""
    rows = sum(evidence.row_count(run_dir, table) for table in ("sends", "reads", "replicas"))
    if engine == "duckdb":
        return Duck(work, rows=rows, threads=2 if rows > FEW_ROWS else 1)
    if engine != "spark":
        raise ValueError(f"no engine named {engine}: spark or duckdb")
    mine = session if session is not None else spark.start(master, rows=rows)
    return Spark(mine, work, owned=session is None, rows=rows)


def first_columns(rows: Sequence[Row], name: str) -> list[Any]:
    """One column of an answer."""
    return [row[name] for row in rows]
