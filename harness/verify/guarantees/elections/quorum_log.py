"""The controllers of KRaft's quorum keep one metadata log.

Raft promises: an epoch has one leader, epochs only rise, copies that have a batch of the same
offset and epoch have the same bytes there, and committed batches stay. Followers may be behind, and
may hold a tail of a former epoch that was never committed, so copies on disk need not be equal.

A batch is committed if a majority held it at one moment of the run while no other copy had a later
log (`metadata_copies`): only a controller with it could be elected then. The lab records it during
the run, with broker -1. After the run a majority of the copies must hold each such batch, or begin
with a snapshot that includes it.

In a dynamic quorum the majority is that of the voters after the run: voters are added and removed
one at a time, so that each majority shares a voter with those before and after it (KIP-853).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

_COMMITTED = "(SELECT * FROM metadata_logs WHERE broker < 0)"
_COPIES = "(SELECT * FROM metadata_logs WHERE broker >= 0)"
_VOTERS_COPIES = "(SELECT * FROM metadata_logs WHERE broker >= 0 AND COALESCE(is_voter, TRUE))"
_HOLDERS = """COUNT(DISTINCT CASE WHEN copies.base IS NOT NULL OR holder.start > committed.base
  THEN holder.broker END)"""


def _explain(row: Mapping[str, Any]) -> str:
    place = f"the metadata batch at offset {row['base']} of epoch {row['epoch']}"
    sentences = {
        "two leaders": f"Controllers {row['broker']} and {row['other']} both became leader of the "
        f"quorum in epoch {row['epoch']}.",
        "epoch went back": f"In the metadata log of controller {row['broker']} epoch "
        f"{row['epoch']} follows epoch {row['other']} at offset {row['base']}.",
        "different bytes": f"Two copies of {place} differ.",
        "lost": f"{place[0].upper()}{place[1:]} was committed during the run, and {row['holders']} "
        f"of {row['copies']} voters hold it, or a snapshot of it, after the run.",
        "two changes": f"{place[0].upper()}{place[1:]} changes {row['other']} voters of the quorum "
        "at once.",
    }
    return sentences[row["sub_kind"]]


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """One leader for each epoch, rising epochs in each copy, equal batches at equal offset and
    epoch, committed batches in a majority of the voters' copies or in front of their start, and at
    most one added or removed voter in a batch."""
    leaders: dict[int, set[int]] = defaultdict(set)
    copies: dict[int, list[Row]] = defaultdict(list)
    contents: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    changes: set[tuple[int, int]] = set()
    for row in history.metadata_logs:
        if row.leader is not None:
            leaders[row.epoch].add(row.leader)
        copies[row.broker].append(row)
        contents[row.base, row.epoch].add((row.crc, row.size))
        if (row.get("changed_voters") or 0) > 1:
            changes.add((row.base, row.epoch))
    committed = copies.pop(-1, [])
    for epoch, epoch_leaders in leaders.items():
        if len(epoch_leaders) > 1:
            yield Violation("two leaders", subject=subject_text(epoch, None))
    for rows in copies.values():
        for before, row in pairwise(sorted(rows, key=lambda row: int(row.base))):
            if row.epoch < before.epoch:
                yield Violation("epoch went back", subject=subject_text(row.epoch, row.base))
    for (base, epoch), batch_contents in contents.items():
        if len(batch_contents) > 1:
            yield Violation("different bytes", subject=subject_text(epoch, base))
    for base, epoch in changes:
        yield Violation("two changes", subject=subject_text(epoch, base))
    voters_rows = [
        voter_rows
        for rows in copies.values()
        if (voter_rows := [row for row in rows if row.get("is_voter") is not False])
    ]
    for base, epoch in {(row.base, row.epoch) for row in committed}:
        holders = sum(
            any(
                (row.base, row.epoch) == (base, epoch) or (row.get("start") or 0) > base
                for row in rows
            )
            for rows in voters_rows
        )
        if voters_rows and 2 * holders <= len(voters_rows):
            yield Violation("lost", subject=subject_text(epoch, base))


GUARANTEE = Guarantee(
    name="quorum_log",
    rank=65,
    about="controllers of a KRaft quorum keep different metadata logs",
    promise="The quorum has one leader an epoch, epochs only rise, and what was committed to the "
    "metadata log stays in it. Voters are added and removed one at a time.",
    source="KIP-595; KIP-853; Raft: election safety, log matching, leader completeness",
    sub_kinds={
        "two leaders": "two controllers became leader in one epoch",
        "epoch went back": "a controller's log has a lower epoch behind a higher one",
        "different bytes": "batches of the same offset and epoch differ between copies",
        "lost": "a batch that was committed during the run is not in a majority of the copies, nor "
        "in front of their first offset, where a snapshot stands for it",
        "two changes": "a record of a dynamic quorum's voters adds or removes several at once",
    },
    details=(
        "Judged are clusters of the lab without ZooKeeper, whose controllers' disks it reads.",
        "A batch is committed when a majority of the copies holds it and no other copy has a later "
        "log.",
    ),
    not_counted=("Copies that are behind, and tails of former epochs that were never committed.",),
    occasion=Occasion.QUORUM,
    opportunities=f"SELECT COUNT(*) AS n FROM {_COMMITTED} committed",
    violations=f"""
SELECT 'two leaders' AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off,
  MIN(at_ns) AS at_ns, MAX(at_ns) AS until_ns, CAST(NULL AS BIGINT) AS base, epoch,
  MIN(leader) AS broker, MAX(leader) AS other, CAST(NULL AS BIGINT) AS holders,
  CAST(NULL AS BIGINT) AS copies
FROM metadata_logs WHERE leader IS NOT NULL GROUP BY epoch HAVING MIN(leader) <> MAX(leader)
UNION ALL
SELECT 'epoch went back', NULL, NULL, at_ns, at_ns, base, epoch, broker, former_epoch, NULL, NULL
FROM (SELECT *, LAG(epoch) OVER (PARTITION BY broker ORDER BY base) AS former_epoch
      FROM {_COPIES} copies) batches
WHERE epoch < former_epoch
UNION ALL
SELECT 'different bytes', NULL, NULL, MIN(at_ns), MAX(at_ns), base, epoch, MIN(broker),
  MAX(broker), NULL, NULL
FROM metadata_logs GROUP BY base, epoch
HAVING MIN(crc) <> MAX(crc) OR MIN(size) <> MAX(size)
UNION ALL
SELECT 'two changes', NULL, NULL, MIN(at_ns), MAX(at_ns), base, epoch, MIN(broker),
  MAX(changed_voters), NULL, NULL
FROM metadata_logs WHERE changed_voters > 1 GROUP BY base, epoch
UNION ALL
SELECT 'lost', NULL, NULL, MIN(committed.at_ns), MIN(committed.at_ns), committed.base,
  committed.epoch, CAST(NULL AS INT), CAST(NULL AS INT), {_HOLDERS}, COUNT(DISTINCT holder.broker)
FROM {_COMMITTED} committed
CROSS JOIN (SELECT broker, MAX(COALESCE(start, 0)) AS start FROM {_VOTERS_COPIES} copies
            GROUP BY broker) holder
LEFT JOIN {_VOTERS_COPIES} copies ON copies.broker = holder.broker AND copies.base = committed.base
  AND copies.epoch = committed.epoch
GROUP BY committed.base, committed.epoch
HAVING 2 * {_HOLDERS} <= COUNT(DISTINCT holder.broker)""",
    explain=_explain,
    tie="finding.epoch, finding.base",
    needs=("metadata_logs",),
    reads=("metadata_logs",),
    rests_on=("metadata_logs",),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.epoch, violation.base)",
)
