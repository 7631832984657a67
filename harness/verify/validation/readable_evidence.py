"""Makes damaged evidence readable, so that its intact parts are judged all the same.

Intact parts are linked, parts with other columns are rewritten with this version's columns, and
unreadable, doubled and unlisted parts are left out. Each change is reported, with the table that it
puts in doubt.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import SCHEMAS, TABLES
from urteil.harness.verify import evidence
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.part_cache import once_a_version
from urteil.harness.verify.validation import cell_checks
from urteil.harness.verify.validation.cell_checks import AGAIN
from urteil.harness.verify.validation.manifest import listed_parts
from urteil.harness.verify.validation.part_checks import column_problems, null_impossible
from urteil.harness.verify.validation.report import ValidationReport

ROWS = 65_536


@dataclass(slots=True)
class ReadableEvidence:
    """The folder to read the evidence from, and what is wrong with its parts."""

    run_dir: Path
    report: ValidationReport = field(default_factory=ValidationReport)


def make_readable(run_dir: Path, work: Path, *, deep: bool = False) -> ReadableEvidence:
    """The run itself if every part is intact, else a copy of the intact parts under `work`.

    `deep` reads every part to its end: for parts whose footer is intact and whose data is not.
    """
    if deep:
        return _make_readable(run_dir, work, deep=True)
    try:
        return _make_readable(run_dir, work, deep=False)
    except (pa.ArrowException, OSError):
        return _make_readable(run_dir, work, deep=True)


def _make_readable(run_dir: Path, work: Path, *, deep: bool) -> ReadableEvidence:
    readable = ReadableEvidence(run_dir)
    report = readable.report
    folder = run_dir / "evidence"
    if folder.exists() and not folder.is_dir():
        report.add([f"{folder.name} is not a folder of tables: {AGAIN}"])
    plan: dict[Path, pa.Schema | None] = {}
    listed = listed_parts(run_dir)
    for table, schema in SCHEMAS.items():
        for part in _parts_of_run(run_dir, table, listed.get(table), report):
            have = _schema_of(part, run_dir, table, report, deep=deep)
            if have is not None:
                problems = column_problems(part, table)
                plan[part] = None if have.equals(schema) and not problems else have
                if problems:
                    name = part.relative_to(run_dir)
                    report.add_damage(table, f"{name}: {'; '.join(problems)}")
    if report.reasons or any(plan.values()):
        readable.run_dir = work / "read"
        shutil.rmtree(readable.run_dir, ignore_errors=True)
        for part, have in plan.items():
            _write_part(run_dir, readable.run_dir, part, have)
    _report_cells(readable)
    return readable


def _report_cells(readable: ReadableEvidence) -> None:
    """Report the cells that `evidence.rows` leaves out of the small tables."""
    for table in cell_checks.CHECKED:
        for part in evidence.files(readable.run_dir, table):
            name = str(part.relative_to(readable.run_dir))
            for sentence in _invalid_cells(part, table, name):
                readable.report.add_damage(table, sentence)


@once_a_version
def _invalid_cells(part: Path, table: str, name: str) -> tuple[str, ...]:
    if _is_null_free(part, cell_checks.placing_columns(table)):
        return ()
    rows = _labels(part) if TABLES[table].is_written_live else evidence.rows_of(part, table)
    return tuple(cell_checks.describe_invalid(table, name, rows))


def _is_null_free(part: Path, columns: Collection[str]) -> bool:
    """Whether the statistics of the part show that none of these columns holds a null; False
    without columns."""
    metadata = evidence.footer(part)
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    at = [number for number, name in enumerate(metadata.schema.names) if name in columns]
    statistics = [group.column(number).statistics for group in groups for number in at]
    return (
        bool(columns)
        and len(at) == len(columns)
        and all(
            bounds is not None and bounds.has_null_count and bounds.null_count == 0
            for bounds in statistics
        )
    )


def _labels(part: Path) -> list[Row]:
    """The distinct labels of a part of `samples`, whose rows grow with the load."""
    column = pq.ParquetFile(part).read(["labels"], use_threads=False)["labels"]
    return [{"labels": cell} for cell in pc.unique(column).to_pylist()]


def _parts_of_run(
    run_dir: Path, table: str, listed: set[str] | None, report: ValidationReport
) -> Iterator[Path]:
    """The parts that belong to the run: each once, and none that the manifest does not list."""
    kept: dict[str, list[Path]] = defaultdict(list)
    files = evidence.files(run_dir, table)
    for part in files:
        name = part.relative_to(run_dir)
        if not part.is_file():
            report.add_damage(table, _unreadable(name, "it is none, or a link to nothing"))
            continue
        if listed is not None and part.name not in listed and part.name != "empty.parquet":
            report.add([f"{name} is not in the manifest and was left out"])
            continue
        outline = _outline(part) if len(files) > 1 else ""
        similar = kept[outline] if outline else []
        twin = next((other for other in similar if _have_same_rows(other, part)), None)
        if twin is not None:
            report.add([f"{name} is the same as {twin.name} and was left out"])
            continue
        kept[outline].append(part)
        yield part


def _outline(part: Path) -> str:
    """Row count and bounds of all columns, from the footer; empty without rows or statistics."""
    ends: dict[str, list[Any]] = defaultdict(list)
    try:
        metadata = evidence.footer(part)
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(number)
                if chunk.statistics is not None and chunk.statistics.has_min_max:
                    ends[chunk.path_in_schema] += [chunk.statistics.min, chunk.statistics.max]
    except (pa.ArrowException, OSError, ValueError):  # as of times finer than Python's own
        return ""
    spans = {name: (min(both), max(both)) for name, both in ends.items()}
    return f"{metadata.num_rows} {sorted(spans.items())}" if metadata.num_rows else ""


def _have_same_rows(path: Path, other: Path) -> bool:
    """Whether both hold the same rows in the same order, however they are written."""
    try:
        return bool(pq.ParquetFile(path).read().equals(pq.ParquetFile(other).read()))
    except (pa.ArrowException, OSError):
        return False


def _schema_of(
    part: Path, run_dir: Path, table: str, report: ValidationReport, *, deep: bool
) -> pa.Schema | None:
    """The part's columns; None, and reported, if it is not an intact Parquet file."""
    try:
        return _read_schema(part, deep=deep)
    except (pa.ArrowException, OSError, ValueError) as error:
        report.add_damage(table, _unreadable(part.relative_to(run_dir), error))
        return None


@once_a_version
def _read_schema(part: Path, *, deep: bool) -> pa.Schema:
    """The part's columns. Raises ArrowException, OSError or ValueError if it is not readable."""
    file = pq.ParquetFile(part)
    have = file.schema_arrow
    for batch in file.iter_batches(ROWS) if deep else ():
        batch.validate(full=True)
    if twice := sorted({name for name in have.names if have.names.count(name) > 1}):
        raise ValueError(f"it has {', '.join(twice)} twice")
    return have


def _unreadable(name: Path, error: Exception | str) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{name} is not a complete Parquet file ({text}): {AGAIN}"


def _write_part(run_dir: Path, target: Path, part: Path, have: pa.Schema | None) -> None:
    path = target / part.relative_to(run_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    if have is None:
        path.symlink_to(part.resolve())
        return
    schema = SCHEMAS[part.parent.name]
    settings = _settings(run_dir) if part.parent.name == "sends" else {}
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in pq.ParquetFile(part).iter_batches(ROWS):
            ours = _as_ours(batch, part.parent.name)
            writer.write_table(_with_settings(ours, have, settings))


def _settings(run_dir: Path) -> dict[tuple[str, int], Row]:
    """The clients' rows by client and session."""
    settings: dict[tuple[str, int], Row] = {}
    for part in evidence.files(run_dir, "clients"):
        try:
            rows = pq.read_table(part).to_pylist()
        except (pa.ArrowException, OSError):
            continue
        settings |= {(row.get("client"), row.get("session")): row for row in rows}
    return settings


def _with_settings(
    sends: pa.Table, have: pa.Schema, settings: dict[tuple[str, int], Row]
) -> pa.Table:
    """`sends` with the settings of their clients, for columns that the part lacks."""
    for name in ("acks", "idempotent"):
        if settings and name not in have.names:
            keys = (sends.column(key).to_pylist() for key in ("client", "session"))
            values = [settings.get(pair, {}).get(name) for pair in zip(*keys, strict=True)]
            at = sends.schema.get_field_index(name)
            column = pa.array(values, type=sends.schema.field(name).type)
            sends = sends.set_column(at, sends.schema.field(name), column)
    return sends


def _as_ours(batch: pa.RecordBatch, table: str) -> pa.Table:
    columns, schema = [], SCHEMAS[table]
    for column in TABLES[table].columns:
        have = batch.column(column.name) if column.name in batch.schema.names else None
        ours = schema.field(column.name)
        if have is not None and evidence.castable(batch.schema.field(column.name), ours):
            columns.append(_cast(null_impossible(have, column), column.type))
        else:
            columns.append(pa.nulls(batch.num_rows, column.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(have: pa.Array, kind: pa.DataType) -> pa.Array:
    """`have` as `kind`, with null for each value that does not fit."""
    try:
        return have.cast(kind)
    except pa.ArrowInvalid:
        return pa.array([_fits(value, kind) for value in have.to_pylist()], type=kind)


def _fits(value: object, kind: pa.DataType) -> object:
    try:
        return pa.scalar(value, type=kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
