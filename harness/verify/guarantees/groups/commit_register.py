"""The committed offset of a group in a partition is one linearizable register.

OffsetCommit writes it, OffsetDelete and DeleteGroups clear it
(harness/verify/derived/deleted_positions.py), and OffsetFetch reads it. A response must hold the
value of a commit in flight, or of the last commit before it. The search is Python, one register
at a time: rows of `commit_breaks` (harness/verify/linearizability.py).

`unstable`: a client that had sent an offset to its transaction got another offset before the
transaction ended, although it had requested stable offsets (workloads with `present_offsets`).
`note`: a response lacked the metadata or the leader epoch committed with the offset (workload
`commits`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.groups.commit_went_back import (
    ANSWERS,
    EXCUSES,
    breaks,
    describe_answer,
)
from urteil.harness.verify.reference import SmallHistory, Violation

_IN_TRANSACTION = """
FROM commit_reads
JOIN commits ON commits.client = commit_reads.client AND commits.session = commit_reads.session
  AND commits.`group` = commit_reads.`group` AND commits.topic_id = commit_reads.topic_id
  AND commits.partition = commit_reads.partition
JOIN txns ON txns.client = commits.client AND txns.session = commits.session
  AND txns.txn = commits.txn
JOIN partitions ON partitions.topic_id = commit_reads.topic_id
  AND partitions.partition = commit_reads.partition
WHERE commits.outcome = 'ok' AND commits.invoke_ns < commit_reads.invoke_ns
  AND commit_reads.complete_ns < txns.commit_invoke_ns
"""
"""Responses to a client within a transaction that it committed afterwards."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "note":
        return (
            f"{describe_answer(row)}, without the metadata or the leader epoch committed with it."
        )
    if row["sub_kind"] == "unstable":
        return (
            f"{describe_answer(row)}, although it requested stable offsets and "
            f"{row['acknowledged']} was part of an open transaction."
        )
    last = f"the last commit acknowledged before was {row['acknowledged']}"
    if row["acknowledged"] is None:
        last = "no commit had been acknowledged before"
    elif row["acknowledged"] == -1:
        last = "the last offset had been deleted or had expired"
    return f"{describe_answer(row)}; {last}, and no order of the commits explains it."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """An answer has the metadata that was committed with the offset.

    Left out: the orders of commits and answers. Their search is plain Python
    (linearizability.py), and its own tests compare it with all orders.
    """
    for answer in history.commit_reads:
        if answer.outcome == "ok" and answer.intact is False:
            yield Violation("note", answer.topic, answer.partition, answer.offset, None)


GUARANTEE = Guarantee(
    name="commit_register",
    rank=60,
    about="a response about a committed offset that no order of the commits explains",
    promise="The one coordinator of a group stores its committed offsets and serves the last of "
    "them; deleted offsets are not served, and a client that requests stable offsets gets "
    "none that an open transaction may change.",
    source="Kafka documentation, Distribution: Consumer Offset Tracking; KIP-211; KIP-229; "
    "KIP-447; KIP-496",
    sub_kinds={
        "register": "the response fits no order of the commits",
        "note": (
            "an offset is returned without the text or the leader epoch that were committed with "
            "it (workload `commits`)"
        ),
        "unstable": (
            "an offset that an open transaction may change is returned to a request for stable "
            "offsets (workloads with `present_offsets`)"
        ),
    },
    details=(
        "OffsetCommit, OffsetFetch and OffsetDelete (or DeleteGroups) of one group and partition "
        "must be linearizable.",
        "An offset with a retention of its own is deleted when that ends (workload `commits` with "
        "`brief_ms`).",
    ),
    not_counted=(
        "What `commit_went_back` does not count.",
        "Deleted topics, whose offsets Kafka deletes too.",
        "A deletion beside a commit, or after which the coordinator changed or a fault acted "
        "within 1.5 x replica.lag.time.max.ms: Kafka acknowledges it before followers have it, "
        "and a failover may undo it.",
    ),
    opportunities=f"SELECT SUM(opportunities.n) AS n "
    f"FROM ({ANSWERS} UNION ALL SELECT COUNT(*) {_IN_TRANSACTION}) opportunities",
    violations=f"""{breaks("register")}
UNION ALL
SELECT 'note', partitions.p, commit_reads.offset, commit_reads.invoke_ns, commit_reads.complete_ns,
  commit_reads.`group`, commit_reads.client, commit_reads.session, commit_reads.offset, NULL, 0
FROM commit_reads JOIN partitions ON partitions.topic_id = commit_reads.topic_id
  AND partitions.partition = commit_reads.partition
WHERE commit_reads.outcome = 'ok' AND commit_reads.intact = FALSE
UNION ALL
SELECT 'unstable', partitions.p, commit_reads.offset, commit_reads.invoke_ns,
  commit_reads.complete_ns, commit_reads.`group`, commit_reads.client, commit_reads.session,
  commit_reads.offset, commits.offset, 0
{_IN_TRANSACTION} AND commit_reads.outcome = 'ok'""",
    excuses=EXCUSES,
    explain=_explain,
    tie="finding.grp, finding.client",
    compares_times=True,
    needs=("commits", "commit_reads"),
    reads=("commit_breaks", "txns", "commits", "commit_reads"),
    reference=_reference,
    reference_covers=("note",),
)
