"""Rows of `metadata_logs`: the batches of KRaft's metadata log, without their records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from urteil.harness.evidence.readers.metadata_log import (
    LEADER_CHANGE,
    MetadataLog,
    RecordSchemas,
    find_segments,
    find_snapshot,
    first_offset,
    lacks_snapshot,
    parse_records,
    voters_of,
)
from urteil.harness.evidence.readers.quorum_votes import granted_votes
from urteil.harness.evidence.readers.stored_batches import StoredBatch, read_batches

SEEN_COMMITTED = -1
"""In place of a controller, in rows of batches that the lab observed as committed during the
run."""

Row = dict[str, Any]


def batch_row(batch: StoredBatch, schemas: RecordSchemas) -> Row:
    """A batch without its broker and its time; `wall_ms` is its writer's. `votes` are rows of that
    table, `voter_ids` the voters of its record of them."""
    log = MetadataLog(Path())
    records = list(parse_records(batch, schemas, log)) if batch.is_control else []
    voters = [ids for record in records if (ids := voters_of(record)) is not None]
    leaders = [record.fields["LeaderId"] for record in records if record.name == LEADER_CHANGE]
    return {
        "base": batch.base,
        "last": batch.last,
        "epoch": batch.columns["leader_epoch"],
        "leader": leaders[0] if leaders else None,
        "crc": batch.columns["batch_crc"],
        "size": batch.size,
        "wall_ms": batch.max_timestamp_ms,
        "votes": [vote for record in records for vote in granted_votes(record)],
        "voter_ids": sorted(voters[-1].items()) if voters else None,
    }


def read_copy(folder: Path, schemas: RecordSchemas, damage: list[str]) -> Iterator[Row]:
    """The rows of one copy, up to a damaged batch of a segment, which `damage` receives as a
    sentence. `start` is the offset at which the copy begins: a snapshot includes everything
    before."""
    segments = find_segments(folder)
    start = first_offset(segments)
    if start > 0 and find_snapshot(folder, segments) is None:
        damage.append(lacks_snapshot(start))
    former: set[tuple[int, str]] | None = None
    for segment in segments:
        for batch in read_batches(segment):
            if isinstance(batch, str):
                damage.append(f"{segment.name}: {batch}")
                return
            if not batch.crc_holds or batch.error is not None:
                reason = batch.error or "wrong CRC"
                damage.append(f"{segment.name}: the batch at offset {batch.base}: {reason}")
                return
            row = batch_row(batch, schemas) | {"start": start}
            voters = row["voter_ids"]
            if voters is not None:
                row["changed_voters"] = len(former ^ {*voters}) if former is not None else 0
                former = {*voters}
            yield row


def add_directories(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of one copy, with log directories in their votes. The batch that begins an epoch
    lists voters by node id alone (4.4.0); the record of voters before it names their log
    directories."""
    voters: dict[int, str] = {}
    for row in rows:
        voters = dict(row.get("voter_ids") or voters.items())
        for vote in row.get("votes", ()):
            vote["directory"] = vote.get("directory") or voters.get(vote["broker"])
        yield row


def read_committed(file: Path) -> Iterator[Row]:
    """The rows that the lab wrote during the run, up to an incomplete line of a killed lab."""
    if not file.exists():
        return
    for line in file.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            return
        yield json.loads(line)
