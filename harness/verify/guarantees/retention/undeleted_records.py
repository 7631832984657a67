"""Records below the low watermark that DeleteRecords returned are gone.

`on a replica`, `told`: DeleteRecords was acknowledged up to an offset, yet at the end an in-sync
replica begins before it, or a final pass received an earlier log start. Left out where all
replicas were stopped since, because log starts are checkpointed once a minute. After a response
that got lost, an in-sync replica still has to begin where its leader does. `fetched`: within one
leader epoch a leader reported a log start and then served a fetch from before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.reference import SmallHistory, Violation

_BEFORE = "FROM answers a WHERE a.kind = 'before'"


def _explain(row: Mapping[str, Any]) -> str:
    where, broker = f"{row['topic']}-{row['partition']}", row["broker"]
    sentences = {
        "on a replica": f"The records of {where} below {row['start']} were deleted, yet the log of "
        f"broker {broker}, which is in sync, begins at {row['off']}.",
        "told": f"The records of {where} below {row['start']} were deleted, yet a later reader "
        f"received {row['off']} as its log start.",
        "fetched": f"Broker {broker} reported that {where} begins at {row['start']}, and then "
        f"served a fetch from {place(row)}.",
    }
    return sentences[row["sub_kind"]]


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No leader serves a fetch from before the log start that it reported in the same epoch, for
    which clients ask (`before`).

    Left out: requests to delete records.
    """
    for partition in history.partitions:
        for answer in partition.offset_answers:
            if "before" in answer.query and answer.error is None:
                yield partition.violation("fetched", answer.offset)


GUARANTEE = Guarantee(
    name="undeleted_records",
    rank=30,
    split_from="kept_too_long",
    about="records that an administrator deleted still exist",
    promise="Records before the low watermark that DeleteRecords returns are gone, and a fetch "
    "below a partition's first offset is out of range.",
    source="KIP-107",
    sub_kinds={
        "on a replica": "records that DeleteRecords deleted are in the end on a replica in sync",
        "told": "a later final pass received a log start below them",
        "fetched": (
            "a leader that had returned the partition's begin did not reject a fetch from before "
            "it, in the same epoch"
        ),
    },
    not_counted=(
        "Deleted records where all replicas ended without a clean stop since: the start of a log "
        "is written to disk once a minute and at a clean stop.",
    ),
    opportunities=f"""
SELECT SUM(o.n) AS n FROM (
  SELECT COUNT(*) AS n FROM parts q WHERE q.deleted_to IS NOT NULL AND q.has_log = 1
  UNION ALL SELECT COUNT(*) {_BEFORE}) o""",
    violations=f"""
SELECT 'on a replica' AS sub_kind, l.p, l.log_start AS off, q.deleted_ns AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, l.broker, COALESCE(q.deleted_to, q.cut_to) AS start
FROM logs_p l JOIN parts q ON q.p = l.p
WHERE l.in_isr = 1 AND q.gone = 0 AND (l.log_start < q.deleted_to
  OR (l.log_start < q.cut_to AND q.log_start >= q.cut_to AND q.has_log = 1))
UNION ALL
SELECT 'told', q.p, w.from_offset, w.begin_ns, MAX(w.end_ns), w.leader, MAX(q.deleted_to)
FROM passes w JOIN parts q ON q.topic_id = w.topic_id AND q.partition = w.partition
WHERE w.final AND q.gone = 0 AND w.begin_ns > q.deleted_ns AND w.from_offset < q.deleted_to
GROUP BY q.p, w.from_offset, w.begin_ns, w.leader
UNION ALL
SELECT 'fetched', a.p, a.offset, a.invoke_ns, a.complete_ns, a.node, a.offset + 1
{_BEFORE} AND a.error IS NULL""",
    explain=_explain,
    tie="j.broker",
    compares_times=True,
    failed_lab_excuses=True,
    needs=("logs",),
    reads=("parts", "answers", "logs_p", "passes", "parts.cut_to", "parts.deleted_to"),
    subjects=("parts.deleted_to", "parts.cut_to", "answers"),
    rests_on=("logs", "replicas", "sends", "passes", "states", "offset_answers"),
    reference=_reference,
    reference_covers=("fetched",),
)
