"""Import of tables in the form of docs/reference/evidence.md, recorded by another tool.

`sends` and `reads` suffice. Missing tables are withheld: checks that need them are not judged.
Without logs, every record that was read counts as stored. Without passes, each stretch of ordered
reads (`pass`) is one, from its first offset to its last.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.chaos.similar_names import suggest
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.imports.tables import text_tables
from urteil.harness.imports.tables.missing_columns import (
    NEEDED,
    SHARED,
    Settings,
    client_rows,
    drop_columns,
    fill_columns,
)
from urteil.harness.imports.tables.run_facts import describe
from urteil.harness.imports.tables.skipped_records import find_skipped_records
from urteil.harness.imports.tables.text_tables import TablesError
from urteil.harness.verify import evidence

TOPICS = "topics.json"
"""The optional file of topic settings beside the tables: name to setting to value."""
BOOT = "elsewhere"
MOST = (1 << 63) - 1
"""The largest offset. A pass over it ends there, since no table has a larger one."""
READ = (*NEEDED, "clients", "passes", "replicas", "logs", "states", "manifest")
"""Tables that run.json and scenario.json are derived from."""
GROUP = ("client", "session", "pass", "topic_id", "topic", "partition")


def tables_in(folder: Path) -> dict[str, list[Path]]:
    """The files of each table in `folder` or in its folder `evidence`.

    Forms are NAME/*.parquet, NAME.parquet and those of `text_tables`. Empty without sends and
    reads.
    """
    ends = [".parquet", *text_tables.SUFFIXES, *(f"{suffix}.gz" for suffix in text_tables.SUFFIXES)]
    for place in (folder / "evidence", folder):
        tables = {
            name: [
                *(path for end in ends for path in sorted((place / name).glob(f"*{end}"))),
                *(path for end in ends for path in place.glob(f"{name}{end}")),
            ]
            for name in SCHEMAS
        }
        if tables["sends"] or tables["reads"]:
            return {name: files for name, files in tables.items() if files}
    return {}


def load(
    folder: Path, run_dir: Path, *, acks: int, idempotent: bool, isolation: str, command: str
) -> int:
    """Make `run_dir` a run of the tables in `folder`. Returns the number of sends and reads.

    `acks`, `idempotent` and `isolation` are the clients' settings where the tables have none.
    Raises TablesError with the invalid file.
    """
    brought = tables_in(folder)
    if "sends" not in brought:
        raise TablesError(f"{folder} has no sends (sends.parquet, sends.csv, sends.jsonl or a "
                          "folder sends): the written records are unknown")  # fmt: skip
    settings: Settings = {"acks": acks, "idempotent": idempotent}
    have = {name: _read(name, files) for name, files in brought.items()
            if name in READ or not _is_parquet(files)}  # fmt: skip
    configs = _configs(folder, have)
    for name in SHARED:
        if any(name not in have[table].column_names for table in NEEDED if table in have):
            have |= {table: drop_columns(have[table], [name]) for table in NEEDED if table in have}
    run = _run_of(have["sends"])
    whole = {
        table for table, files in brought.items()
        if _is_parquet(files) and (table not in NEEDED or _has_all_columns(table, files))
        if table != "sends" or not any(have[table][name].null_count for name in settings)
    }  # fmt: skip
    stretched = "reads" in have and "pass" not in have["reads"].column_names
    ids = _ids(brought, have)
    have |= {
        table: fill_columns(
            table, _add_topic_ids(have[table], ids, brought[table][0]), run, settings
        )
        for table in NEEDED
        if table in have
    }
    if "clients" not in have:
        defaults = settings | {"isolation": isolation, "boot_id": BOOT}
        have["clients"] = client_rows(have["sends"], have.get("reads"), run, defaults)
    made = "passes" not in have
    if made and "reads" in have:
        have["passes"] = _passes(have["reads"], run, _isolations(have["clients"], isolation))
    _write(run_dir / "evidence", have, {name: brought[name] for name in whole})
    settings["isolation"] = isolation
    problems: list[str] = []
    if made and stretched and "reads" in have:
        compacted = {
            name
            for name, config in configs.items()
            if "compact" in config.get("cleanup.policy", "")
        }
        problems += find_skipped_records(have["sends"], have["reads"], compacted)
    describe(run_dir, run, have, configs, settings, command, problems, made=made)
    return sum(len(have[name]) for name in NEEDED if name in have)


def _read(name: str, files: list[Path]) -> pa.Table:
    try:
        tables = [pq.read_table(file) if _is_parquet([file]) else text_tables.read(name, file)
                 for file in files]  # fmt: skip
        have = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(error).split())[:200]
        raise TablesError(f"{files[0]}: {name} cannot be read ({text}); expected Parquet, CSV "
                          "or JSON, all parts with the same columns") from None  # fmt: skip
    needed = NEEDED.get(name, ())
    lacks = [column for column in needed if column not in have.column_names]
    lacks += [] if not needed or {"topic", "topic_id"} & {*have.column_names} else ["topic"]
    if lacks:
        raise TablesError(
            f"{files[0]}: {name} has no {', '.join(lacks)} (docs/reference/evidence.md)"
        )
    for column in SCHEMAS[name] if needed else ():
        have = _as_text(have, column, files[0]) if column.name in have.column_names else have
        kind = have.schema.field(column.name) if column.name in have.column_names else column
        if not evidence.castable(kind, column):
            raise TablesError(f"{files[0]}: {column.name} is {kind.type}, should be {column.type}")
    return have


def _is_parquet(files: list[Path]) -> bool:
    return all(file.suffix == ".parquet" for file in files)


def _as_text(have: pa.Table, column: pa.Field, file: Path) -> pa.Table:
    """Convert numbers and times that are texts."""
    at, kind = have.column_names.index(column.name), have.schema.field(column.name).type
    if pa.types.is_timestamp(kind):
        text = have.column(at).cast(pa.timestamp("ns", kind.tz)).cast(pa.string()).to_pylist()
    elif pa.types.is_string(kind) and not pa.types.is_string(column.type):
        text = have.column(at).to_pylist()
    else:
        return have
    return have.set_column(at, column, text_tables.to_column(text, column, file))


def _ids(brought: dict[str, list[Path]], have: dict[str, pa.Table]) -> dict[str, set[str]]:
    """The topic ids of each topic name, in any table."""
    others = [file for name, files in brought.items() if name not in have for file in files]
    ids: dict[str, set[str]] = defaultdict(set)
    for pairs in chain(have.values(), _pairs(others)):
        if {"topic", "topic_id"} <= {*pairs.column_names}:
            for row in pairs.group_by(["topic", "topic_id"]).aggregate([]).to_pylist():
                if None not in row.values():
                    ids[row["topic"]].add(row["topic_id"])
    return ids


def _pairs(files: list[Path]) -> Iterator[pa.Table]:
    """The topics of each readable file. Validation reports unreadable ones."""
    for file in files:
        try:
            yield pq.read_table(file, columns=["topic", "topic_id"])
        except (pa.ArrowException, OSError, KeyError):
            continue


def _add_topic_ids(have: pa.Table, ids: dict[str, set[str]], file: Path) -> pa.Table:
    """`have` with the topic ids of other tables, where it has only names."""
    if "topic_id" in have.column_names or not ids:
        return have
    column = have["topic"].to_pylist()
    for name in dict.fromkeys(column):
        if len(ids.get(name, ())) > 1:
            raise TablesError(f"{file}: it has no topic_id, and topic {name} had several (it was "
                              "deleted and created again): add the column")  # fmt: skip
    known = {name: next(iter(some)) for name, some in ids.items()}
    return have.append_column(
        "topic_id", pa.array([known.get(name, name) for name in column], pa.string())
    )


def _has_all_columns(name: str, files: list[Path]) -> bool:
    """Whether every part has all columns, in their types."""
    return all(
        column.name in part.names and evidence.castable(part.field(column.name), column)
        for part in map(pq.read_schema, files)
        for column in SCHEMAS[name]
    )


def _write(target: Path, have: dict[str, pa.Table], brought: dict[str, list[Path]]) -> None:
    """Write complete tables unchanged, and others with every column."""
    for name, schema in SCHEMAS.items():
        (target / name).mkdir(parents=True)
        if name in brought:
            for file in brought[name]:
                shutil.copyfile(file, target / name / file.name)
        else:
            rows = _convert_types(have[name], schema) if name in have else schema.empty_table()
            pq.write_table(rows, target / name / "part-0.parquet")


def _convert_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the schema's types. Values too wide for a column keep their type: validation
    reports them."""
    columns = []
    for field in schema:
        if field.name not in rows.column_names:
            columns.append(pa.chunked_array([pa.nulls(len(rows), field.type)]))
            continue
        column = rows[field.name]
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowInvalid:
            columns.append(column)
    return pa.table(columns, names=schema.names)


def _run_of(sends: pa.Table) -> str:
    runs = pc.unique(sends["run"]).to_pylist() if "run" in sends.column_names else []
    return next((str(run) for run in runs if run), secrets.token_hex(4))


def _configs(folder: Path, have: dict[str, pa.Table]) -> dict[str, dict[str, str]]:
    """The settings of `TOPICS`, by topic."""
    path = folder / TOPICS
    if not path.exists():
        return {}
    try:
        configs = {
            topic: {name: str(value) for name, value in settings.items()}
            for topic, settings in json.loads(path.read_bytes()).items()
        }
    except (OSError, ValueError, AttributeError) as error:
        raise TablesError(f'{path}: {error}; expected {{"TOPIC": {{"cleanup.policy": '
                          '"compact"}}') from None  # fmt: skip
    known = {
        str(topic)
        for rows in have.values()
        for column in {"topic", "topic_id"}.intersection(rows.column_names)
        for topic in pc.unique(rows[column]).to_pylist()
    }
    for topic in configs.keys() - known:
        raise TablesError(f"{path}: no table has a topic {topic}; {suggest(topic, sorted(known))}")
    return configs


def _isolations(rows: pa.Table, default: str) -> dict[tuple[Any, Any], str]:
    """The isolation of each client and session."""
    return {
        (row["client"], row.get("session", 0)): row.get("isolation") or default
        for row in rows.to_pylist()
    }


def _passes(reads: pa.Table, run: str, isolations: dict[tuple[Any, Any], str]) -> pa.Table:
    """Ordered reads as passes."""
    whole = reads.filter(pc.is_valid(reads["offset"]))
    spans = whole.group_by(list(GROUP)).aggregate(
        [("offset", "min"), ("offset", "max"), ("read_ns", "min"), ("read_ns", "max")]
    )
    rows = [
        {name: row[name] for name in GROUP}
        | {"run": run, "from_offset": row["offset_min"]}
        | {"to_offset": min(row["offset_max"] + 1, MOST)}
        | {"begin_ns": row["read_ns_min"], "end_ns": row["read_ns_max"]}
        | {"isolation": isolations.get((row["client"], row["session"]))}
        | {"final": True, "complete": True}
        for row in spans.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["passes"])
