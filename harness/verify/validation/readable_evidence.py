"""Damaged evidence made readable: what is intact is judged all the same.

Intact parts are linked, parts with other columns are rewritten with this version's columns, and
unreadable, doubled and unlisted parts are left out. Each change is reported, with the table that it
puts in doubt.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify import evidence
from urteil.harness.verify.evidence import OPTIONAL, Row
from urteil.harness.verify.part_cache import once_a_version
from urteil.harness.verify.validation import cell_checks, column_bounds

ROWS = 65_536


@dataclass(slots=True)
class ReadableEvidence:
    """The folder to read from, the problems found, and the damaged tables with a sentence each."""

    run_dir: Path
    problems: list[str] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)

    def add_damage(self, table: str, sentence: str) -> None:
        self.problems.append(sentence)
        self.damaged.setdefault(table, sentence)


def make_readable(run_dir: Path, work: Path, *, deep: bool = False) -> ReadableEvidence:
    """The run itself where every part is intact, else a copy of the intact parts under `work`.

    `deep` reads every part to its end: for parts whose footer is intact and whose data is not.
    """
    if deep:
        return _make_readable(run_dir, work, deep=True)
    try:
        return _make_readable(run_dir, work, deep=False)
    except (pa.ArrowException, OSError):
        return _make_readable(run_dir, work, deep=True)


def _make_readable(run_dir: Path, work: Path, *, deep: bool) -> ReadableEvidence:
    found = ReadableEvidence(run_dir)
    folder = run_dir / "evidence"
    if folder.exists() and not folder.is_dir():
        found.problems.append(f"{folder.name} is no folder of tables: collect the evidence again")
    plan: dict[Path, pa.Schema | None] = {}
    known = listed(run_dir)
    for table, schema in SCHEMAS.items():
        for part in _parts_of_run(run_dir, table, known.get(table), found):
            have = _schema_of(part, run_dir, table, found, deep=deep)
            if have is not None:
                problems = _columns(part, table)
                plan[part] = None if have.equals(schema) and not problems else have
                if problems:
                    found.add_damage(table, f"{part.relative_to(run_dir)}: {'; '.join(problems)}")
    if found.problems or any(plan.values()):
        found.run_dir = work / "read"
        shutil.rmtree(found.run_dir, ignore_errors=True)
        for part, have in plan.items():
            _write_part(run_dir, found.run_dir, part, have)
    _report_cells(found)
    return found


def _report_cells(found: ReadableEvidence) -> None:
    """Report the cells that `evidence.rows` leaves out of the small tables."""
    for table in sorted(cell_checks.NEEDED.keys() | cell_checks.JSON.keys()):
        for part in evidence.files(found.run_dir, table):
            name = str(part.relative_to(found.run_dir))
            for sentence in _odd_cells(part, table, name):
                found.add_damage(table, sentence)


@once_a_version
def _odd_cells(part: Path, table: str, name: str) -> tuple[str, ...]:
    rows = _labels(part) if table == "samples" else evidence.rows_of(part, table)
    return tuple(cell_checks.odd(table, name, rows))


def _labels(part: Path) -> list[Row]:
    """Those of a part of `samples`, each once: its rows grow with the load."""
    column = pq.ParquetFile(part).read(["labels"], use_threads=False)["labels"]
    return [{"labels": one} for one in pc.unique(column).to_pylist()]


def _parts_of_run(
    run_dir: Path, table: str, known: set[str] | None, found: ReadableEvidence
) -> Iterator[Path]:
    """The parts that belong to the run: each once, and none that the manifest does not list."""
    seen: dict[str, list[Path]] = defaultdict(list)
    parts = evidence.files(run_dir, table)
    for part in parts:
        name = part.relative_to(run_dir)
        if not part.is_file():
            found.add_damage(table, _unreadable(name, "it is none, or a link to nothing"))
            continue
        if known is not None and part.name not in known and part.name != "empty.parquet":
            found.problems.append(f"{name} is not in the manifest and was left out")
            continue
        alike = _outline(part) if len(parts) > 1 else ""
        twin = (
            next((other for other in seen[alike] if _have_same_rows(other, part)), None)
            if alike
            else None
        )
        if twin is not None:
            found.problems.append(f"{name} is the same as {twin.name} and was left out")
            continue
        seen[alike].append(part)
        yield part


def listed(run_dir: Path) -> dict[str, set[str]]:
    """Part files by table, where the manifest lists them."""
    names: dict[str, set[str]] = defaultdict(set)
    for row in manifest_rows(run_dir):
        path = Path(str(row["file"]))
        if row["kind"] == "part" and path.parent.name in SCHEMAS and path.parent.name != "samples":
            names[path.parent.name].add(path.name)
    return names


def manifest_rows(run_dir: Path) -> list[Row]:
    """The manifest as far as it can be read."""
    found: list[Row] = []
    for part in evidence.files(run_dir, "manifest"):
        try:
            rows = pq.read_table(part).to_pylist()
        except (pa.ArrowException, OSError):
            continue
        found += [{"file": None, "kind": None, "rows": None} | row for row in rows]
    return found


def _outline(part: Path) -> str:
    """Row count and bounds of all columns, from the footer; empty without rows or statistics."""
    ends: dict[str, list[Any]] = defaultdict(list)
    try:
        metadata = evidence.footer(part)
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                one = metadata.row_group(group).column(number)
                if one.statistics is not None and one.statistics.has_min_max:
                    ends[one.path_in_schema] += [one.statistics.min, one.statistics.max]
    except (pa.ArrowException, OSError, ValueError):  # as of times finer than Python's own
        return ""
    spans = {name: (min(both), max(both)) for name, both in ends.items()}
    return f"{metadata.num_rows} {sorted(spans.items())}" if metadata.num_rows else ""


def _have_same_rows(one: Path, other: Path) -> bool:
    """Whether both hold the same rows in the same order, however they are written."""
    try:
        return bool(pq.ParquetFile(one).read().equals(pq.ParquetFile(other).read()))
    except (pa.ArrowException, OSError):
        return False


def _schema_of(
    part: Path, run_dir: Path, table: str, found: ReadableEvidence, *, deep: bool
) -> pa.Schema | None:
    """The part's columns; None, and reported, where it is no intact Parquet file."""
    try:
        have = _readable(part, deep=deep)
    except (pa.ArrowException, OSError, ValueError) as error:
        found.add_damage(table, _unreadable(part.relative_to(run_dir), error))
        return None
    return have


@once_a_version
def _readable(part: Path, *, deep: bool) -> pa.Schema:
    """The part's columns. Raises ArrowException, OSError or ValueError where it is not readable."""
    file = pq.ParquetFile(part)
    have = file.schema_arrow
    for batch in file.iter_batches(ROWS) if deep else ():
        batch.validate(full=True)
    if twice := sorted({name for name in have.names if have.names.count(name) > 1}):
        raise ValueError(f"it has {', '.join(twice)} twice")
    return have


def _unreadable(name: Path, error: Exception | str) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{name} is no whole Parquet file ({text}): collect the evidence again"


@once_a_version
def _columns(part: Path, table: str) -> list[str]:
    """The problems of a part's columns."""
    file = pq.ParquetFile(part)
    have, ours = file.schema_arrow, {column.name: column for column in SCHEMAS[table]}
    problems = []
    if lost := [name for name in ours if name not in {*have.names, *OPTIONAL[table]}]:
        problems.append(f"it has no {', '.join(lost)} as this version of Urteil writes it")
    problems += [
        f"{name} is {have.field(name).type}, should be {column.type}"
        for name, column in ours.items()
        if name in have.names and not evidence.castable(have.field(name), column)
    ]
    if far := column_bounds.wild(file, table, SCHEMAS[table]):
        numbers = ", ".join(map(str, far.values()))
        problems.append(
            f"{', '.join(far)} with numbers that none can be ({numbers}); they count as unknown: "
            f"{cell_checks.AGAIN}"
        )
    if strange := column_bounds.strange(file, table):
        words = ", ".join(f"{word[:60]!r}" for word in strange.values())
        problems.append(f"{', '.join(strange)} with words that no check knows ({words})")
    if lost := column_bounds.blank(file, table):
        problems.append(f"it has rows without {', '.join(lost)}: {cell_checks.AGAIN}")
    return problems


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
    found: dict[tuple[str, int], Row] = {}
    for part in evidence.files(run_dir, "clients"):
        try:
            rows = pq.read_table(part).to_pylist()
        except (pa.ArrowException, OSError):
            continue
        found |= {(row.get("client"), row.get("session")): row for row in rows}
    return found


def _with_settings(
    sends: pa.Table, have: pa.Schema, settings: dict[tuple[str, int], Row]
) -> pa.Table:
    """`sends` with the settings of their clients, where they do not repeat them."""
    for name in ("acks", "idempotent"):
        if settings and name not in have.names:
            who = zip(
                *(sends.column(key).to_pylist() for key in ("client", "session")), strict=True
            )
            values = [settings.get(pair, {}).get(name) for pair in who]
            at = sends.schema.get_field_index(name)
            column = pa.array(values, type=sends.schema.field(name).type)
            sends = sends.set_column(at, sends.schema.field(name), column)
    return sends


def _as_ours(batch: pa.RecordBatch, table: str) -> pa.Table:
    columns, schema = [], SCHEMAS[table]
    for column in schema:
        have = batch.column(column.name) if column.name in batch.schema.names else None
        if have is not None and evidence.castable(batch.schema.field(column.name), column):
            columns.append(_cast(column_bounds.tamed(have, table, column), column.type))
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
