"""Rows of `metadata_logs`: the batches of KRaft's metadata log, without their records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from urteil.harness.evidence.readers.metadata_log import (
    LEADER_CHANGE,
    MetadataLog,
    RecordSchemas,
    parse_records,
)
from urteil.harness.evidence.readers.stored_batches import StoredBatch, read_batches

SEEN_COMMITTED = -1
"""Stands for a controller in rows of what the lab saw committed during the run."""

Row = dict[str, Any]


def batch_row(batch: StoredBatch, schemas: RecordSchemas) -> Row:
    """A batch without its holder and its time; `wall_ms` is its writer's."""
    records = parse_records(batch, schemas, MetadataLog(Path())) if batch.is_control else ()
    leaders = [record.fields["LeaderId"] for record in records if record.name == LEADER_CHANGE]
    return {
        "base": batch.base,
        "last": batch.last,
        "epoch": batch.columns["leader_epoch"],
        "leader": leaders[0] if leaders else None,
        "crc": batch.columns["batch_crc"],
        "size": batch.size,
        "wall_ms": batch.max_timestamp_ms,
    }


def read_copy(file: Path, schemas: RecordSchemas, damage: list[str]) -> Iterator[Row]:
    """The rows of one copy, up to a damaged batch, which `damage` gets in a sentence."""
    for batch in read_batches(file):
        if isinstance(batch, str):
            damage.append(batch)
            return
        if not batch.crc_holds or batch.error is not None:
            damage.append(f"the batch at offset {batch.base}: {batch.error or 'wrong CRC'}")
            return
        yield batch_row(batch, schemas)


def read_committed(file: Path) -> Iterator[Row]:
    """The rows that the lab wrote during the run, up to a line that a killed lab left cut."""
    if not file.exists():
        return
    for line in file.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            return
        yield json.loads(line)
