"""Records below the low watermark that DeleteRecords returned are gone.

`on a replica`, `told`: DeleteRecords was acknowledged up to an offset, yet at the end an in-sync
replica begins before it, or a final pass received an earlier log start. Left out if all replicas
were stopped since, because log starts are checkpointed once a minute. After a lost response, an
in-sync replica must still begin where its leader does. `fetched`: within one leader epoch a leader
reported a log start and then served a fetch from before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.reference import SmallHistory, Violation

_BEFORE = "FROM answers WHERE answers.kind = 'before'"


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
    """No leader serves a fetch from before the log start that it reported in the same epoch.
    Clients request such fetches (`before`).

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
    unused_evidence=(
        "Log starts that live readers received after DeleteRecords: a broker that crashed "
        "knows an older start until it fetches from the leader.",
    ),
    opportunities=f"""
SELECT SUM(opportunities.n) AS n FROM (
  SELECT COUNT(*) AS n FROM partitions WHERE deleted_to IS NOT NULL AND has_log = 1
  UNION ALL SELECT COUNT(*) {_BEFORE}) opportunities""",
    violations=f"""
SELECT 'on a replica' AS sub_kind, logs_p.p, logs_p.log_start AS off,
  partitions.deleted_ns AS at_ns, CAST(NULL AS BIGINT) AS until_ns, logs_p.broker,
  COALESCE(partitions.deleted_to, partitions.cut_end) AS start
FROM logs_p JOIN partitions ON partitions.p = logs_p.p
WHERE logs_p.in_isr = 1 AND partitions.gone = 0 AND (logs_p.log_start < partitions.deleted_to
  OR (logs_p.log_start < partitions.cut_end AND partitions.log_start >= partitions.cut_end
      AND partitions.has_log = 1))
UNION ALL
SELECT 'told', partitions.p, passes.from_offset, passes.begin_ns, MAX(passes.end_ns), passes.leader,
  MAX(partitions.deleted_to)
FROM passes JOIN partitions ON partitions.topic_id = passes.topic_id
  AND partitions.partition = passes.partition
WHERE passes.final AND partitions.gone = 0 AND passes.begin_ns > partitions.deleted_ns
  AND passes.from_offset < partitions.deleted_to
GROUP BY partitions.p, passes.from_offset, passes.begin_ns, passes.leader
UNION ALL
SELECT 'fetched', answers.p, answers.offset, answers.invoke_ns, answers.complete_ns, answers.node,
  answers.offset + 1
{_BEFORE} AND answers.error IS NULL""",
    explain=_explain,
    tie="finding.broker",
    compares_times=True,
    failed_lab_excuses=True,
    needs=("logs",),
    reads=(
        *("partitions", "answers", "logs_p"),
        *("passes", "partitions.cut_end", "partitions.deleted_to"),
    ),
    subjects=("partitions.deleted_to", "partitions.cut_end", "answers"),
    rests_on=("logs", "replicas", "sends", "passes", "states", "offset_answers"),
    reference=_reference,
    reference_covers=("fetched",),
)
