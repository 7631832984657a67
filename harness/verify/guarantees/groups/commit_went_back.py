"""A committed offset does not decrease by itself.

Violated when OffsetFetch returns an offset below one whose commit was acknowledged earlier, and no
later commit, not even one of unknown outcome, was as low. Also violated when a member starts to
read there in a partition that was assigned to it later. Rows of `commit_breaks`
(harness/verify/derived/committed_positions.py)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Excuse, Guarantee
from urteil.harness.verify.guarantees.groups.two_owners import LOST_OFFSETS
from urteil.harness.verify.reference import Row, SmallHistory, Violation

EXCUSES = (
    Excuse(
        when="violation.former_coordinator = 1",
        reason="a deposed coordinator that could not know it answers from memory",
    ),
    LOST_OFFSETS,
)


def breaks(kind: str) -> str:
    """The rows of one kind as a guarantee's violations."""
    return f"""
SELECT kind AS sub_kind, p, answered AS off, at_ns, until_ns, grp, client, session,
  answered, acknowledged, former_coordinator
FROM commit_breaks WHERE kind = '{kind}'"""


ANSWERS = "SELECT COUNT(*) AS n FROM commit_reads WHERE outcome = 'ok'"


def describe_answer(row: Mapping[str, Any]) -> str:
    """The fetching client and the returned offset."""
    answer = "no offset" if row["answered"] is None else f"offset {row['answered']}"
    return (
        f"{row['client']} fetched the committed offset of {row['grp']} in "
        f"{row['topic']}-{row['partition']} and received {answer}"
    )


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "resumed":
        return (
            f"{row['client']} was assigned {row['topic']}-{row['partition']} of {row['grp']} and "
            f"continued from {row['answered']}, though {row['acknowledged']} had been acknowledged "
            "before."
        )
    return f"{describe_answer(row)}, though {row['acknowledged']} had been acknowledged."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No answer is below an acknowledged commit, unless a commit as low as the answer may have come
    after that one.

    Left out: commits in transactions, deletions, and the offsets at which members continue to read.
    """
    for partition in history.partitions:
        for answer in partition.commit_reads:
            if answer.outcome != "ok" or answer.complete_ns is None:
                continue
            commits = [
                row
                for row in partition.commits
                if row.group == answer.group and row.outcome != "fail"
            ]
            position = _position(answer)
            low = [
                row
                for row in commits
                if _position(row) <= position and row.invoke_ns <= answer.complete_ns
            ]
            if any(
                _position(row) > position
                and _acknowledged_ns(row) < answer.invoke_ns
                and all(_last_ns(other) < row.invoke_ns for other in low)
                for row in commits
            ):
                yield partition.violation("went back", None if position < 0 else position)


def _position(row: Row) -> int:
    return -1 if row.offset is None else int(row.offset)


def _acknowledged_ns(row: Row) -> float:
    """The time by which a commit had taken effect; infinite without an answer."""
    is_done = row.outcome == "ok" and row.complete_ns is not None
    return float(max(row.complete_ns, row.invoke_ns)) if is_done else math.inf


def _last_ns(row: Row) -> float:
    """The last time at which a commit may take effect; infinite for one that was repeated after an
    error."""
    return math.inf if row.error else _acknowledged_ns(row)


GUARANTEE = Guarantee(
    name="commit_went_back",
    rank=50,
    about="a committed offset decreased although no client committed a lower one",
    promise="The broker sends a successful offset commit response only after all the replicas of "
    "the offsets topic receive the offsets.",
    source="Kafka documentation, 4.5 The Consumer; Distribution: Consumer Offset Tracking",
    sub_kinds={
        "went back": "OffsetFetch returned a lower offset than was acknowledged",
        "resumed": "a member that got the partition after that read on from below the commit",
    },
    details=(
        "OffsetFetch answers below a commit that was acknowledged before, with no commit as low "
        "since, not even one of unknown outcome.",
    ),
    not_counted=(
        "Commits that were repeated: an attempt may arrive late.",
        "Answers that a former coordinator may have given (permitted).",
        "Commits in transactions until the next one of the same producer ended, at most for 10 s "
        "after their own end was acknowledged, and after each fault that lasts then: their "
        "markers are written later.",
        "No position, if for `offsets.retention.minutes` (a week by default) no member committed "
        "or got a partition of the group.",
        "`resumed` in groups that commit in transactions, for members whose generation is not "
        "exposed, and after a seek or a reset since the assignment.",
    ),
    opportunities=ANSWERS,
    violations=f"{breaks('went back')} UNION ALL {breaks('resumed')}",
    excuses=EXCUSES,
    explain=_explain,
    tie="finding.grp, finding.client",
    compares_times=True,
    needs=("commits", "commit_reads"),
    reads=("commit_breaks", "commit_reads"),
    reference=_reference,
    reference_covers=("went back",),
)
