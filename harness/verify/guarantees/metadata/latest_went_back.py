"""The latest offset that brokers return never decreases within a leader epoch.

The last stable offset, the end for readers of committed records, does not decrease either: a
transaction begins at the end of the log, never below what was stable. Judged are ListOffsets
responses of version 5 and later that did not overlap. OFFSET_NOT_AVAILABLE is correct for a
leader that does not know its end yet."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.chaos.capabilities import END_AFTER_WATERMARK
from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.losses import LOSSES_SHOWN
from urteil.harness.verify.reference import SmallHistory, Violation

_ANSWERED = f"""answers.api_version >= {END_AFTER_WATERMARK.version} AND answers.error IS NULL
  AND answers.offset >= 0 AND answers.leader_epoch >= 0"""

LATEST_ANSWERS = f"FROM answers WHERE answers.kind = 'latest' AND {_ANSWERED}"
_ENDS = f"FROM answers WHERE answers.kind IN ('latest', 'stable') AND {_ANSWERED}"


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No answer about the end is lower than one that was complete before its request, in the same
    leader epoch or an older one."""
    for partition in history.partitions:
        for kind, word in (("fell", "latest"), ("stable fell", "stable")):
            answers = [
                row for row in partition.offset_answers
                if word in row.query and row.error is None and row.offset >= 0
                and row.api_version >= END_AFTER_WATERMARK.version and row.leader_epoch >= 0
            ]  # fmt: skip
            for answer in answers:
                if any(
                    before.complete_ns < answer.invoke_ns
                    and before.leader_epoch <= answer.leader_epoch
                    and before.offset > answer.offset
                    for before in answers
                ):
                    yield partition.violation(kind, answer.offset)


GUARANTEE = Guarantee(
    name="latest_went_back",
    rank=10,
    about="the latest offset decreased from one response to a later one",
    promise="Offsets returned by ListOffsets are monotonic: a leader that does not yet know the "
    "high watermark answers OFFSET_NOT_AVAILABLE instead of an older end.",
    source="KIP-207",
    sub_kinds={
        "fell": "the later end is lower and its epoch is not",
        "stable fell": "so is the last stable offset",
    },
    details=("Two answers to ListOffsets (version 5 and later) that did not overlap.",),
    not_counted=("Errors, OFFSET_NOT_AVAILABLE among them, and later answers in an older epoch.",),
    requires=(END_AFTER_WATERMARK,),
    opportunities=f"SELECT COUNT(*) AS n {_ENDS}",
    violations=f"""
SELECT CASE WHEN answered_ends.lookup = 'stable' THEN 'stable fell' ELSE 'fell' END AS sub_kind,
  answered_ends.p, answered_ends.off, answered_ends.at_ns, MAX(answered_ends.until_ns) AS until_ns,
  answered_ends.node, answered_ends.leader_epoch, MAX(answered_ends.before_off) AS before_off,
  MAX(partitions.unclean_on) AS unclean_on, MAX(partitions.unclean_floor) AS unclean_floor,
  MAX(partitions.lost_floor) AS lost_floor,
  MAX(CASE WHEN answered_ends.lately_off > answered_ends.off
           THEN answered_ends.at_ns END) AS known_ns, MAX(partitions.losses_ns) AS losses_ns
FROM (SELECT events.*, MAX(events.known_off) OVER w AS before_off,
        MAX(CASE WHEN events.t >= partitions.losses_ns THEN events.known_off END)
          OVER w AS lately_off
      FROM (SELECT answers.p, answers.kind AS lookup, answers.leader_epoch AS epoch,
              answers.complete_ns AS t, 1 AS kind,
              answers.offset AS known_off, CAST(NULL AS BIGINT) AS off,
              CAST(NULL AS BIGINT) AS at_ns,
              CAST(NULL AS BIGINT) AS until_ns, answers.node, answers.leader_epoch {_ENDS}
            UNION ALL
            SELECT end_answers.p, end_answers.kind, leader_epochs.epoch, end_answers.invoke_ns, 0,
              NULL, end_answers.offset, end_answers.invoke_ns, end_answers.complete_ns,
              end_answers.node, end_answers.leader_epoch
            FROM (SELECT answers.* {_ENDS}) end_answers
            JOIN (SELECT DISTINCT answers.p, answers.leader_epoch AS epoch {_ENDS}) leader_epochs
              ON leader_epochs.p = end_answers.p
                AND leader_epochs.epoch <= end_answers.leader_epoch) events JOIN partitions
                ON partitions.p = events.p
      WINDOW w AS (PARTITION BY events.p, events.lookup, events.epoch ORDER BY events.t, events.kind
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) answered_ends
JOIN partitions ON partitions.p = answered_ends.p
WHERE answered_ends.kind = 0 AND answered_ends.before_off > answered_ends.off
GROUP BY answered_ends.p, answered_ends.lookup, answered_ends.off, answered_ends.at_ns,
  answered_ends.node, answered_ends.leader_epoch""",
    excuses=LOSSES_SHOWN,
    explain=lambda row: (
        f"Broker {row['node']} reported in epoch {row['leader_epoch']} that {row['topic']}-"
        f"{row['partition']} {'is stable up to' if row['sub_kind'] == 'stable fell' else 'ends at'}"
        f" {row['off']}, after {row['before_off']} had been answered in no later epoch."
    ),
    tie="finding.node, finding.leader_epoch",
    compares_times=True,
    needs=("offset_answers",),
    reads=("partitions", "answers"),
    rests_on=("offset_answers",),
    reference=_reference,
)
