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
    """The engine's folder inside the run's folder."""
    scatter: str
    """The clause that partitions rows by bucket before the big aggregation; may be empty."""

    gather: str
    """The clause that partitions rows by value; may be empty."""

    versions: dict[str, str]
    """Names and versions of the software, for `versions` in a result."""

    workers: int
    """The number of queries that it runs in parallel."""

    def view(self, name: str, folder: Path, schema: pa.Schema | None = None) -> None:
        """Create a view of the Parquet files in `folder`; without files, one of `schema`."""
        ...

    def table(self, name: str, rows: pa.Table) -> None:
        """Create a table of `rows`."""
        ...

    def keep(self, name: str, query: str, cut: Cut | None = None) -> None:
        """Create a table of the rows of `query`, which lasts until the engine is closed. With a
        `cut`, the engine may run the query in parts."""
        ...

    def store(self, query: str, folder: Path) -> None:
        """Write the rows of `query` into `folder` as Parquet."""
        ...

    def query(self, query: str) -> list[Row]:
        """Run a query and return all rows."""
        ...

    def interrupt(self) -> None:
        """Make the running queries fail; called from another thread."""
        ...

    def close(self) -> None:
        """Release the engine's resources. A Spark session of the caller's stays open."""
        ...


_OPEN: WeakSet[Engine] = WeakSet()
"""The open engines of this process."""


def interrupt(run_dir: Path) -> None:
    """Make all running queries over this run's evidence fail."""
    for engine in list(_OPEN):
        if engine.work.resolve().is_relative_to(run_dir.resolve()):
            engine.interrupt()


def open_views(engine: Engine, run_dir: Path, derived: Derived) -> None:
    """Create a view for each table of the evidence, and a table for each derived one."""
    for table, schema in SCHEMAS.items():
        engine.view(table, run_dir / "evidence" / table, schema)
    for table in DERIVED:
        engine.table(table, derived.arrow(table))


KEPT_ROWS = 50_000
"""Tables with at most this many rows are loaded into DuckDB's memory once; larger ones are read by
each query."""

_XXHASH64 = "CREATE MACRO xxhash64(x) AS CAST(hash(x) >> 1 AS BIGINT)"
"""A function with the name of Spark's, whose hashes have other values."""

FEW_ROWS = 5_000
"""With at most this many rows of evidence, starting threads takes longer than they save."""

LARGE_ROWS = 10_000_000
"""With more rows of evidence than this, DuckDB stores results as Parquet files. A query then reads
only the columns it needs; tables that exceed the memory would be spilled and read again with all
columns."""


def memory_mb() -> int:
    """DuckDB's memory limit: a twelfth of this machine's memory, and at least 1 GB. DuckDB spills
    the rest to disk."""
    return max(1024, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 12 // 2**20)


class Duck:
    """Embedded DuckDB with a database in memory, which spills to `work`."""

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
        """`database` is a database shared with other engines; without it the engine opens one.
        `rows` is the number of rows of evidence."""
        work.mkdir(parents=True, exist_ok=True)
        self._connection = database.cursor() if database else connect(work, threads=threads)
        self.workers = threads
        self.versions = {"duckdb": duckdb.__version__}
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
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
        """A connection to the database for one thread."""
        cursor = self._connection.cursor()
        self._cursors.add(cursor)
        try:
            yield cursor
        finally:
            self._cursors.discard(cursor)
            cursor.close()

    def interrupt(self) -> None:
        for cursor in self._cursors.copy():
            with suppress(duckdb.Error):  # of a query that has just ended
                cursor.interrupt()

    def close(self) -> None:
        _OPEN.discard(self)
        self._connection.close()


def connect(work: Path, *, threads: int) -> duckdb.DuckDBPyConnection:
    """Open a new database in memory that spills to `work`, with the functions and the order of
    nulls that our queries expect."""
    limits = {"threads": threads, "memory_limit": f"{memory_mb()}MiB"}
    spill = {"temp_directory": str(work / "spill"), "default_null_order": NULL_ORDER}
    connection = duckdb.connect(config=limits | spill)
    connection.execute(_XXHASH64)
    return connection


def fits_in_memory(files: Sequence[Path]) -> bool:
    """Whether DuckDB loads the rows of these files into its memory."""
    return _rows(files) <= KEPT_ROWS


def _empty(name: str, schema: Iterable[pa.Field]) -> str:
    columns = ", ".join(f'"{field.name}" {_SPARK[field.type]}' for field in schema)
    return f"CREATE OR REPLACE TABLE {name} ({columns})"


_PARSED: dict[str, duckdb.Statement] = {}
MOST_PARSED = 512


def parse(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    """Translate and parse a query, for any connection. The statement is cached: parsing takes a
    third of a query's time over few rows, and the self-test repeats every query."""
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
"""Tables with fewer rows are part of Spark's plan instead of files."""


class Spark:
    """A Spark session, set up for a run with `rows` rows of evidence.

    Tables of small runs stay in memory, each in a single partition. A query then has few tasks and
    needs no shuffle, broadcast or file, whose start would take most of its time.
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
        result = self._session.sql(query)
        result.write.mode("overwrite").parquet(str(folder))
        spark.compile_plans(self._session, self._large)
        return result.schema

    def _open(
        self, name: str, folder: Path, kinds: Any, local: int, schema: pa.Schema | None = None
    ) -> None:
        """Create a view. Fewer rows than `local` become part of the plan. In a large run the filter
        FALSE lets the planner remove joins with an empty table."""
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
    """Open the engine `duckdb`, or `spark` on `session` (by default a new one on `master`)."""
    rows = sum(evidence.row_count(run_dir, table) for table in ("sends", "reads", "replicas"))
    if engine == "duckdb":
        return Duck(work, rows=rows, threads=2 if rows > FEW_ROWS else 1)
    if engine != "spark":
        raise ValueError(f"no engine named {engine}: spark or duckdb")
    opened = session if session is not None else spark.start(master, rows=rows)
    return Spark(opened, work, owned=session is None, rows=rows)


def first_columns(rows: Sequence[Row], name: str) -> list[Any]:
    """One column of the rows."""
    return [row[name] for row in rows]
