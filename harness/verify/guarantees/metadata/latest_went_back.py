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

_ANSWERED = """a.api_version >= 5 AND a.error IS NULL AND a.offset >= 0
  AND a.leader_epoch >= 0"""

TOLD = f"FROM answers a WHERE a.kind = 'latest' AND {_ANSWERED}"
_ENDS = f"FROM answers a WHERE a.kind IN ('latest', 'stable') AND {_ANSWERED}"


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No answer about the end is lower than one that was complete before its request, in the same
    leader epoch or an older one."""
    for partition in history.partitions:
        for kind, word in (("fell", "latest"), ("stable fell", "stable")):
            answers = [
                row for row in partition.offset_answers
                if word in row.query and row.error is None and row.offset >= 0
                and row.api_version >= 5 and row.leader_epoch >= 0
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
SELECT CASE WHEN t.asked = 'stable' THEN 'stable fell' ELSE 'fell' END AS sub_kind, t.p, t.off,
  t.at_ns, MAX(t.until_ns) AS until_ns, t.node, t.leader_epoch,
  MAX(t.before_off) AS before_off, MAX(q.unclean_on) AS unclean_on,
  MAX(q.unclean_floor) AS unclean_floor, MAX(q.lost_floor) AS lost_floor,
  MAX(CASE WHEN t.lately_off > t.off THEN t.at_ns END) AS known_ns, MAX(q.spoilt_ns) AS spoilt_ns
FROM (SELECT m.*, MAX(m.told) OVER w AS before_off,
        MAX(CASE WHEN m.t >= z.spoilt_ns THEN m.told END) OVER w AS lately_off
      FROM (SELECT a.p, a.kind AS asked, a.leader_epoch AS epoch, a.complete_ns AS t, 1 AS kind,
              a.offset AS told, CAST(NULL AS BIGINT) AS off, CAST(NULL AS BIGINT) AS at_ns,
              CAST(NULL AS BIGINT) AS until_ns, a.node, a.leader_epoch {_ENDS}
            UNION ALL
            SELECT a.p, a.kind, e.epoch, a.invoke_ns, 0, NULL, a.offset, a.invoke_ns,
              a.complete_ns, a.node, a.leader_epoch
            FROM (SELECT a.* {_ENDS}) a
            JOIN (SELECT DISTINCT a.p, a.leader_epoch AS epoch {_ENDS}) e
              ON e.p = a.p AND e.epoch <= a.leader_epoch) m JOIN parts z ON z.p = m.p
      WINDOW w AS (PARTITION BY m.p, m.asked, m.epoch ORDER BY m.t, m.kind
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) t
JOIN parts q ON q.p = t.p
WHERE t.kind = 0 AND t.before_off > t.off
GROUP BY t.p, t.asked, t.off, t.at_ns, t.node, t.leader_epoch""",
    excuses=LOSSES_SHOWN,
    explain=lambda row: (
        f"Broker {row['node']} said in epoch {row['leader_epoch']} that {row['topic']}-"
        f"{row['partition']} {'is stable up to' if row['sub_kind'] == 'stable fell' else 'ends at'}"
        f" {row['off']}, after {row['before_off']} had been answered in no later epoch."
    ),
    tie="j.node, j.leader_epoch",
    compares_times=True,
    needs=("offset_answers",),
    reads=("parts", "answers"),
    rests_on=("offset_answers",),
    reference=_reference,
)
