"""Counts how often a run reached each rare state.

DuckDB runs every query, even if Spark judges the run: the counts judge nothing, and each needs one
pass over the evidence. Evidence of earlier versions may lack columns and tables: a missing column
is null in every row, and a state that reads a table without rows is not counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import RunFacts, load_facts, save
from urteil.harness.verify import evidence
from urteil.harness.verify.engines.engine import connect, fits_in_memory
from urteil.harness.verify.rare_states import STATES
from urteil.harness.verify.rare_states.base import RareState
from urteil.harness.verify.rare_states.counts import FILE, StateCounts, load_counts
from urteil.harness.verify.rare_states.prepared import PREPARED, prepare

MACROS = (
    "CREATE MACRO seconds(s) AS CAST(CAST(s AS DOUBLE) * 1000000000 AS BIGINT)",
    "CREATE MACRO among(item, list) AS contains(list, concat(',', item, ','))",
    # Names of errors as `IllegalGenerationError`, `ILLEGAL_GENERATION` and `_FENCED`.
    "CREATE MACRO error_is(error, word) AS contains(upper(replace(error, '_', '')), word)",
)
VIEWS: dict[str, tuple[tuple[str, ...], str]] = {
    "new_epochs": (
        ("versions",),
        "SELECT * FROM versions WHERE epoch > prev_epoch",
    ),
    "elected": (
        ("versions",),
        "SELECT * FROM versions WHERE epoch > prev_epoch AND leader >= 0 AND leader <> prev_leader",
    ),
    "broker_absences": (
        ("presences",),
        """SELECT * FROM (
             SELECT broker, until_ns AS gone_ns,
               LEAD(from_ns, 1, 9000000000000000000) OVER (PARTITION BY broker ORDER BY from_ns)
                 AS back_ns
             FROM presences)
           WHERE gone_ns < back_ns AND gone_ns < (SELECT end_ns FROM load_span)""",
    ),
    "placed_sends": (
        ("sends",),
        """SELECT places.p, sends.* FROM sends JOIN places ON places.topic_id = sends.topic_id
             AND places.partition = COALESCE(sends.partition, sends.partition_intended)""",
    ),
    "transaction_parts": (
        ("sends",),
        """SELECT client, session, txn, p, MIN(invoke_ns) AS first_ns, MAX(invoke_ns) AS last_ns
           FROM placed_sends WHERE txn IS NOT NULL GROUP BY ALL""",
    ),
    "markers": (
        ("replicas",),
        """SELECT * FROM (
             SELECT broker, topic_id, partition, producer_id, replicas.offset AS marker_offset,
               control, leader_epoch, timestamp_ms,
               LAG(control IS NULL) OVER earlier AS follows_record,
               LAG(leader_epoch) OVER earlier AS record_epoch
             FROM replicas WHERE transactional OR control IS NOT NULL
             WINDOW earlier AS (PARTITION BY broker, topic_id, partition, producer_id
               ORDER BY replicas.offset))
           WHERE control IS NOT NULL""",
    ),
    "transaction_ends": (
        ("sends", "replicas"),
        """SELECT stored.client, stored.session, stored.txn, markers.broker, markers.control,
             markers.timestamp_ms
           FROM (SELECT sends.client, sends.session, sends.txn, replicas.broker,
                   replicas.topic_id, replicas.partition, replicas.producer_id,
                   MAX(replicas.offset) AS last_offset
                 FROM sends JOIN replicas ON replicas.value_id = sends.value_id
                 WHERE sends.txn IS NOT NULL GROUP BY ALL) stored
           ASOF JOIN markers ON markers.broker = stored.broker
             AND markers.topic_id = stored.topic_id AND markers.partition = stored.partition
             AND markers.producer_id = stored.producer_id
             AND stored.last_offset < markers.marker_offset""",
    ),
    "gaps": (
        ("replicas",),
        """SELECT * FROM (
             SELECT places.p, replicas.broker, replicas.offset AS before_offset,
               LEAD(replicas.offset) OVER (
                 PARTITION BY places.p, replicas.broker ORDER BY replicas.offset) AS after_offset
             FROM replicas JOIN places USING (topic_id, partition))
           WHERE after_offset > before_offset + 1""",
    ),
}
"""View to the tables of `reads` behind it, and its query:

- `new_epochs`, `elected`: versions that begin a leader epoch; of those, versions with a new leader.
- `broker_absences`: times without a broker's registration that began during the load.
- `placed_sends`: sends with their partition's `p`, where they were meant to go if that is unknown.
- `transaction_parts`: a partition of a transaction, with the times of its first and last send.
- `markers`: a transaction's marker in a replica, with what precedes it there from its producer.
- `transaction_ends`: the marker that ended a transaction in a replica.
- `gaps`: offsets that a replica lacks, from `before_offset` to `after_offset`.
"""
_ALWAYS = ("load_span", "places")
DECLARED = blake2b(repr((STATES, VIEWS, MACROS)).encode(), digest_size=8).hexdigest()
"""The digest of all declarations."""


def saved_counts(run_dir: Path) -> StateCounts:
    """The counts in the run's file. They are counted and saved first if the file is missing,
    unreadable or of other declarations. Raises OSError, msgspec.MsgspecError and pa.ArrowException
    for a run whose facts or small evidence cannot be read, and ValueError for one without
    evidence."""
    counts = load_counts(run_dir)
    if counts is not None and counts.declared == DECLARED:
        return counts
    return save_counts(run_dir, load_facts(run_dir))


def save_counts(run_dir: Path, facts: RunFacts) -> StateCounts:
    """Count the states of a run, and write them into its folder. Raises as `saved_counts` does."""
    if not evidence.files(run_dir, "manifest"):
        raise ValueError("its evidence was not collected")
    counts = count_states(run_dir, facts)
    with suppress(OSError):  # another user's folder may be read-only
        save(run_dir / FILE, counts)
    return counts


def count_states(
    run_dir: Path, facts: RunFacts, states: Iterable[RareState] = STATES.values()
) -> StateCounts:
    """Count the states of the run in `run_dir`. Raises OSError and pa.ArrowException for small
    evidence that cannot be read."""
    states = list(states)
    counts = StateCounts(reached={}, declared=DECLARED)
    with TemporaryDirectory(prefix="urteil-states-") as spill:
        with connect(Path(spill), threads=1) as database:
            for macro in MACROS:
                database.execute(macro)
            tables = _open_tables(database, run_dir, facts, states)
            for state in states:
                _count(database, state, tables, counts)
    return counts


def _count(
    database: duckdb.DuckDBPyConnection,
    state: RareState,
    tables: dict[str, str],
    counts: StateCounts,
) -> None:
    if problem := next((tables[name] for name in state.reads if tables[name]), None):
        counts.not_counted[state.name] = problem
        return
    try:
        row = database.execute(f"SELECT COUNT(*) FROM ({state.query})").fetchone()
    except duckdb.Error as error:
        counts.not_counted[state.name] = _describe_error(error)
        return
    counts.reached[state.name] = int(row[0]) if row else 0


def _open_tables(
    database: duckdb.DuckDBPyConnection,
    run_dir: Path,
    facts: RunFacts,
    states: Iterable[RareState],
) -> dict[str, str]:
    """Open the tables that the states read, and the views. Returns for each table why states that
    read it cannot be counted, or an empty text."""
    named = {name for state in states for name in (*state.reads, *state.may_read)}
    wanted = [name for name in PREPARED if name in named or name in _ALWAYS]
    problems: dict[str, str] = {}
    for name, rows in prepare(run_dir, facts, wanted).items():
        database.register("prepared_rows", pa.Table.from_pylist(rows, schema=PREPARED[name].schema))
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM prepared_rows")
        database.unregister("prepared_rows")
        problems[name] = "" if rows else f"no {', '.join(PREPARED[name].made_of) or name}"
    for name in sorted(named & SCHEMAS.keys()):
        problems[name] = _open_evidence(database, run_dir, name)
    opened = named.union(_ALWAYS)
    for name, (sources, query) in VIEWS.items():
        if opened.issuperset(sources):
            database.execute(f"CREATE VIEW {name} AS {query}")
    return problems


def _open_evidence(database: duckdb.DuckDBPyConnection, run_dir: Path, name: str) -> str:
    """Open a table of evidence with the columns of this version. Returns why it has no rows."""
    nulls = ", ".join(f'CAST(NULL AS {_type(field)}) AS "{field.name}"' for field in SCHEMAS[name])
    try:
        files = evidence.files(run_dir, name)
        if not evidence.row_count(run_dir, name):
            database.execute(f"CREATE TABLE {name} AS SELECT {nulls} LIMIT 0")
            return f"no {name}"
        parts = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
        source = f"read_parquet([{parts}], union_by_name = true)"
        present = {
            row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        }
        columns = ", ".join(
            f'CAST({_column_or_null(field, present)} AS {_type(field)}) AS "{field.name}"'
            for field in SCHEMAS[name]
        )
        kind = "TABLE" if fits_in_memory(files) else "VIEW"
        database.execute(f"CREATE {kind} {name} AS SELECT {columns} FROM {source}")
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        return f"{name} cannot be read: {_describe_error(error)}"
    return ""


def _column_or_null(field: pa.Field, present: Collection[str]) -> str:
    return f'"{field.name}"' if field.name in present else "NULL"


def _type(field: pa.Field) -> str:
    kinds = {pa.string(): "VARCHAR", pa.int32(): "INTEGER", pa.bool_(): "BOOLEAN"}
    return (kinds | {pa.float64(): "DOUBLE"}).get(field.type, "BIGINT")


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
