"""The required evidence: the files and rows of the manifest, and the tables of every run."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import TABLES
from urteil.harness.scenario import RunFacts
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.topic_changes import killed_clients
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.validation.report import ValidationReport

_FAULTS = "faults.jsonl"


def check_tables(run_dir: Path, facts: RunFacts, report: ValidationReport) -> None:
    """Report tables that are empty, or have other rows than the manifest lists, and damaged
    sources."""
    for table in empty_tables(run_dir, facts):
        report.add_damage(table, f"the evidence has no {table}")
    for table, reason in _altered_tables(run_dir).items():
        report.add_damage(table, reason)
    if "manifest" in report.damaged:
        for table in TABLES:
            report.damaged.setdefault(table, report.damaged["manifest"])
    report.add(
        f"{row['file']} is damaged or was cut"
        for row in evidence.rows(run_dir, "manifest")
        if not row["ended_properly"]
        if _kind_of(row) != "journal" or row["file"] == _FAULTS
    )


def empty_tables(run_dir: Path, facts: RunFacts) -> list[str]:
    """Tables that every run has, and that have no rows in this one.

    Empty logs have no records, and a run whose only readers are final ones, all of which ended, may
    have no passes.
    """
    expected = [table.name for table in TABLES.values() if table.in_every_run]
    empty = [
        table
        for table in expected
        if table not in facts.withheld and evidence.row_count(run_dir, table) == 0
    ]
    if "replicas" in empty and "logs" not in empty:
        logs = evidence.rows(run_dir, "logs")
        if all((row["log_start"] or 0) == row["log_end"] for row in logs):
            empty.remove("replicas")
    if "passes" in empty:
        clients = evidence.rows(run_dir, "clients")
        final = [row for row in clients if row["kind"] == "final"]
        readers = any(row["kind"] == "consumer" for row in clients)
        if final and not readers and all(row["end_ns"] is not None for row in final):
            empty.remove("passes")
    return empty


def _altered_tables(run_dir: Path) -> dict[str, str]:
    """Tables that differ from what the manifest lists, each with the sentence."""
    tables: dict[str, str] = {}
    altered_tables: dict[str, str] = {}
    for row in evidence.rows(run_dir, "manifest"):
        file, kind = str(row["file"]), _kind_of(row)
        table = _table_of(file)
        if kind not in ("part", "table") or table not in TABLES or row["rows"] is None:
            continue
        if kind == "part":
            altered = _altered_part(run_dir, file, row["rows"])
            altered_tables |= {table: altered} if altered else {}
        elif (have := evidence.row_count(run_dir, table)) != row["rows"]:
            tables[table] = f"the manifest says {row['rows']} rows of {table}, there are {have}"
    return tables | altered_tables


def _altered_part(run_dir: Path, file: str, rows: int) -> str | None:
    part = run_dir / file
    if not part.exists():
        return f"{file} is missing" if rows else None
    have = evidence.footer(part).num_rows
    return None if have == rows else f"the manifest says {rows} rows of {file}, there are {have}"


def damaged_clients(run_dir: Path) -> frozenset[str]:
    """Clients whose journal is incomplete, although the lab did not kill them on purpose."""
    killed = killed_clients(evidence.rows(run_dir, "admin_ops"))
    return frozenset(
        Path(str(row["file"])).stem
        for row in evidence.rows(run_dir, "manifest")
        if _kind_of(row) == "journal" and not row["ended_properly"] and row["file"] != _FAULTS
        if Path(str(row["file"])).stem not in killed
    )


def listed_parts(run_dir: Path) -> dict[str, set[str]]:
    """Part files by table, where the manifest, as far as it can be read, lists them."""
    names: dict[str, set[str]] = defaultdict(set)
    for part in evidence.files(run_dir, "manifest"):
        try:
            rows = pq.read_table(part).to_pylist()
        except (pa.ArrowException, OSError):
            continue
        for row in rows:
            path = Path(str(row.get("file")))
            table = TABLES.get(path.parent.name)
            if row.get("kind") == "part" and table is not None and not table.is_written_live:
                names[table.name].add(path.name)
    return names


def _kind_of(row: Row) -> str:
    """The kind of a row, derived from its file name if it is null."""
    if row["kind"]:
        return str(row["kind"])
    path = Path(str(row["file"]))
    if path.suffix == ".parquet":
        return "part"
    if path.name in TABLES:
        return "table"
    if path.suffix == ".jsonl":
        return "journal"
    return "zookeeper_log" if "version-2" in path.parts else "replica_log"


def _table_of(file: str) -> str:
    path = Path(file)
    named = path.parent.name if path.suffix == ".parquet" else path.name
    return named or path.stem
