"""The latest offset that a broker returns lies beyond every record acknowledged or read before.

Acknowledged with acks=all; what a reader received is committed, however it was acknowledged. Either
counts if it happened in the epoch of the response or an older one, by the state in ZooKeeper when
it ended. A deposed leader that does not know it yet may return an older end."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.chaos.capabilities import END_AFTER_WATERMARK
from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.losses import LOSSES_SHOWN
from urteil.harness.verify.guarantees.metadata.latest_went_back import LATEST_ANSWERS
from urteil.harness.verify.limits import TICK_NS
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_LATE = f"""
SELECT DISTINCT ticks.p, ticks.tick FROM ticks
  JOIN (SELECT answers.* {LATEST_ANSWERS}) acknowledged_ends
  ON acknowledged_ends.p = ticks.p
WHERE ticks.first_ns < acknowledged_ends.invoke_ns AND ticks.last_off >= acknowledged_ends.offset
"""
"""Times at which a record may have been acknowledged beyond an end that was reported later."""

_ACKS = f"""
SELECT records.sent_p AS p, spans.leader_epoch AS epoch, records.complete_ns AS t,
  MAX(records.ack_off) AS known_off
FROM records JOIN ({_LATE}) late_sends ON late_sends.p = records.sent_p
  AND late_sends.tick = records.complete_ns DIV {TICK_NS}
JOIN state_spans spans ON spans.p = records.sent_p AND records.complete_ns >= spans.begin_ns
  AND records.complete_ns < spans.end_ns
WHERE records.outcome = 'ok' AND records.acks = -1 AND records.ack_off IS NOT NULL
GROUP BY records.sent_p, spans.leader_epoch, records.complete_ns
"""

_LATE_READS = f"""
SELECT DISTINCT read_ticks.p, read_ticks.tick
FROM (SELECT p, read_ns DIV {TICK_NS} AS tick, MIN(read_ns) AS first_ns, MAX(off) AS last_off
      FROM slots WHERE n_reads > 0 GROUP BY p, read_ns DIV {TICK_NS}) read_ticks
JOIN (SELECT answers.* {LATEST_ANSWERS}) read_ends ON read_ends.p = read_ticks.p
WHERE read_ticks.first_ns < read_ends.invoke_ns AND read_ticks.last_off >= read_ends.offset
"""
"""Times at which a record may have been read beyond an end that was reported later."""

_READS = f"""
SELECT slots.p, spans.leader_epoch AS epoch, slots.read_ns AS t, MAX(slots.off) AS known_off
FROM slots JOIN ({_LATE_READS}) late_reads ON late_reads.p = slots.p
  AND late_reads.tick = slots.read_ns DIV {TICK_NS}
JOIN state_spans spans ON spans.p = slots.p AND slots.read_ns >= spans.begin_ns
  AND slots.read_ns < spans.end_ns
WHERE slots.n_reads > 0
GROUP BY slots.p, spans.leader_epoch, slots.read_ns
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """An answered end is beyond every offset that was acknowledged with acks=all, or received by a
    reader, before the request, in the epoch of the answer or an older one."""
    for partition in history.partitions:
        acked = [
            (send.complete_ns, offset, state.leader_epoch)
            for send in partition.sends
            if send.acks == -1 and (offset := acknowledged_offset(send)) is not None
            for state, end_ns in partition.reigns
            if state.at_ns <= send.complete_ns < end_ns
        ]
        first_ns: dict[tuple[int, str], int] = {}
        for read in partition.reads:
            slot = (read.offset, read.value_id)
            first_ns[slot] = min(read.read_ns, first_ns.get(slot, read.read_ns))
        received = [
            (read_ns, offset, state.leader_epoch)
            for (offset, _), read_ns in first_ns.items()
            for state, end_ns in partition.reigns
            if state.at_ns <= read_ns < end_ns
        ]
        for answer in partition.offset_answers:
            is_end = "latest" in answer.query and answer.error is None and answer.offset >= 0
            if not is_end or answer.api_version < END_AFTER_WATERMARK.version:
                continue
            for kind, known in (("behind", acked), ("behind a read", received)):
                if any(
                    at_ns < answer.invoke_ns
                    and offset >= answer.offset
                    and epoch <= answer.leader_epoch
                    for at_ns, offset, epoch in known
                ):
                    yield partition.violation(kind, answer.offset)
                    break


GUARANTEE = Guarantee(
    name="end_below_ack",
    rank=20,
    about="the reported latest offset is at or below one that was acknowledged or read",
    promise="A message acknowledged with acks=all is committed, only committed messages are given "
    "out to consumers, and the latest offset is the end of what is committed.",
    source="KIP-207; Kafka documentation, 4.7 Replication",
    sub_kinds={
        "behind": "the returned end is not beyond the acknowledged record",
        "behind a read": "it is not beyond a record that a reader had received",
    },
    details=(
        "The answered end must be beyond every acks=all offset that was acknowledged before the "
        "request, and beyond every offset that any reader had received before it.",
    ),
    not_counted=(
        "Acknowledgements and reads in a newer epoch than the answer's: a deposed leader may not "
        "know it yet.",
    ),
    requires=(END_AFTER_WATERMARK,),
    opportunities=f"SELECT COUNT(*) AS n {LATEST_ANSWERS}",
    violations=f"""
SELECT CASE WHEN MAX(answered_ends.acked_off) >= answered_ends.off THEN 'behind'
    ELSE 'behind a read' END AS sub_kind, answered_ends.p, answered_ends.off, answered_ends.at_ns,
  MAX(answered_ends.until_ns) AS until_ns, answered_ends.node, answered_ends.leader_epoch,
  MAX(answered_ends.acked_off) AS acked_off, MAX(answered_ends.read_off) AS read_off,
  MAX(partitions.unclean_on) AS unclean_on,
  MAX(partitions.unclean_floor) AS unclean_floor, MAX(partitions.lost_floor) AS lost_floor,
  MAX(CASE WHEN answered_ends.lately_off >= answered_ends.off
           THEN answered_ends.at_ns END) AS known_ns, MAX(partitions.losses_ns) AS losses_ns
FROM (SELECT events.*, MAX(CASE WHEN events.kind = 1 THEN events.known_off END) OVER w AS acked_off,
        MAX(CASE WHEN events.kind = 2 THEN events.known_off END) OVER w AS read_off,
        MAX(CASE WHEN events.t >= partitions.losses_ns THEN events.known_off END)
          OVER w AS lately_off
      FROM (SELECT p, epoch, t, 1 AS kind, known_off, CAST(NULL AS BIGINT) AS off,
              CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns,
              CAST(NULL AS INT) AS node, CAST(NULL AS INT) AS leader_epoch
            FROM ({_ACKS}) acknowledged_ends
            UNION ALL
            SELECT p, epoch, t, 2, known_off, NULL, NULL, NULL, NULL, NULL FROM ({_READS}) read_ends
            UNION ALL
            SELECT end_answers.p, leader_epochs.epoch, end_answers.invoke_ns, 0, NULL,
              end_answers.offset, end_answers.invoke_ns, end_answers.complete_ns, end_answers.node,
              end_answers.leader_epoch
            FROM (SELECT answers.* {LATEST_ANSWERS}) end_answers
              JOIN (SELECT DISTINCT p, leader_epoch AS epoch
                                             FROM state_spans spans) leader_epochs
              ON leader_epochs.p = end_answers.p
                AND leader_epochs.epoch <= end_answers.leader_epoch) events JOIN partitions
                ON partitions.p = events.p
      WINDOW w AS (PARTITION BY events.p, events.epoch ORDER BY events.t, events.kind
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) answered_ends
JOIN partitions ON partitions.p = answered_ends.p
WHERE answered_ends.kind = 0
  AND GREATEST(COALESCE(answered_ends.acked_off, -1), COALESCE(answered_ends.read_off, -1))
    >= answered_ends.off
GROUP BY answered_ends.p, answered_ends.off, answered_ends.at_ns, answered_ends.node,
  answered_ends.leader_epoch""",
    excuses=LOSSES_SHOWN,
    explain=lambda row: (
        f"Broker {row['node']} reported in epoch {row['leader_epoch']} that {row['topic']}-"
        f"{row['partition']} ends at {row['off']}, after offset "
        + (
            f"{row['acked_off']} had been acknowledged with acks=all."
            if row["sub_kind"] == "behind"
            else f"{row['read_off']} had been read."
        )
    ),
    tie="finding.node, finding.leader_epoch",
    compares_times=True,
    needs=("offset_answers", "sends", "states"),
    reads=("slots", "records", "ticks", "partitions", "answers", "state_spans"),
    rests_on=("offset_answers", "sends", "reads", "states"),
    reference=_reference,
)
