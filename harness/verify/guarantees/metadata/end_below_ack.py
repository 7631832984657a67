"""The latest offset that a broker returns lies beyond every record acknowledged before.

With acks=all. An acknowledgement counts if it was given in the epoch of the response or an older
one, by the state in ZooKeeper when it ended. A deposed leader that does not know it yet may
return an older end."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.chaos.capabilities import END_AFTER_WATERMARK
from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.losses import LOSSES_SHOWN
from urteil.harness.verify.guarantees.metadata.latest_went_back import TOLD
from urteil.harness.verify.limits import TICK_NS
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_STEP_NS = 1_000_000

_LATE = f"""
SELECT DISTINCT k.p, k.tick FROM ticks k JOIN (SELECT a.* {TOLD}) a ON a.p = k.p
WHERE k.first_ns < a.invoke_ns AND k.last_off >= a.offset
"""
"""Times at which a record may have been acknowledged beyond an end that was reported later."""

_ACKS = f"""
SELECT v.sent_p AS p, s.leader_epoch AS epoch, MAX(v.complete_ns) AS t, MAX(v.ack_off) AS told
FROM vals v JOIN ({_LATE}) w ON w.p = v.sent_p AND w.tick = v.complete_ns DIV {TICK_NS}
JOIN spans s ON s.p = v.sent_p AND v.complete_ns >= s.begin_ns AND v.complete_ns < s.end_ns
WHERE v.outcome = 'ok' AND v.acks = -1 AND v.ack_off IS NOT NULL
GROUP BY v.sent_p, s.leader_epoch, v.complete_ns DIV {_STEP_NS}
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """An answered end is beyond every offset that was acknowledged with acks=all before the
    request, while an epoch stood that is not newer than the answer's."""
    for partition in history.partitions:
        acked = [
            (send.complete_ns, offset, state.leader_epoch)
            for send in partition.sends
            if send.acks == -1 and (offset := acknowledged_offset(send)) is not None
            for state, end_ns in partition.reigns
            if state.at_ns <= send.complete_ns < end_ns
        ]
        for answer in partition.offset_answers:
            is_end = "latest" in answer.query and answer.error is None and answer.offset >= 0
            if is_end and answer.api_version >= 5 and any(
                at_ns < answer.invoke_ns and offset >= answer.offset
                and epoch <= answer.leader_epoch for at_ns, offset, epoch in acked
            ):  # fmt: skip
                yield partition.violation("behind", answer.offset)


GUARANTEE = Guarantee(
    name="end_below_ack",
    rank=20,
    about="the reported latest offset is at or below an acknowledged one",
    promise="A message acknowledged with acks=all is committed, and the latest offset is the end "
    "of what is committed.",
    source="KIP-207; Kafka documentation, 4.7 Replication",
    sub_kinds={
        "behind": "the returned end is not beyond the acknowledged record",
    },
    details=(
        "The answered end must be beyond every acks=all offset that was acknowledged before the "
        "request.",
    ),
    not_counted=(
        "Acknowledgements in a newer epoch than the answer's: a deposed leader may not know it "
        "yet.",
    ),
    requires=(END_AFTER_WATERMARK,),
    opportunities=f"SELECT COUNT(*) AS n {TOLD}",
    violations=f"""
SELECT 'behind' AS sub_kind, t.p, t.off, t.at_ns, MAX(t.until_ns) AS until_ns, t.node,
  t.leader_epoch, MAX(t.acked_off) AS acked_off, MAX(q.unclean_on) AS unclean_on,
  MAX(q.unclean_floor) AS unclean_floor, MAX(q.lost_floor) AS lost_floor,
  MAX(CASE WHEN t.lately_off >= t.off THEN t.at_ns END) AS known_ns, MAX(q.spoilt_ns) AS spoilt_ns
FROM (SELECT m.*, MAX(m.told) OVER w AS acked_off,
        MAX(CASE WHEN m.t >= z.spoilt_ns THEN m.told END) OVER w AS lately_off
      FROM (SELECT k.p, k.epoch, k.t, 1 AS kind, k.told, CAST(NULL AS BIGINT) AS off,
              CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns,
              CAST(NULL AS INT) AS node, CAST(NULL AS INT) AS leader_epoch
            FROM ({_ACKS}) k
            UNION ALL
            SELECT a.p, e.epoch, a.invoke_ns, 0, NULL, a.offset, a.invoke_ns, a.complete_ns,
              a.node, a.leader_epoch
            FROM (SELECT a.* {TOLD}) a JOIN (SELECT DISTINCT s.p, s.leader_epoch AS epoch
                                             FROM spans s) e
              ON e.p = a.p AND e.epoch <= a.leader_epoch) m JOIN parts z ON z.p = m.p
      WINDOW w AS (PARTITION BY m.p, m.epoch ORDER BY m.t, m.kind
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) t
JOIN parts q ON q.p = t.p
WHERE t.kind = 0 AND t.acked_off >= t.off
GROUP BY t.p, t.off, t.at_ns, t.node, t.leader_epoch""",
    excuses=LOSSES_SHOWN,
    explain=lambda row: (
        f"Broker {row['node']} said in epoch {row['leader_epoch']} that {row['topic']}-"
        f"{row['partition']} ends at {row['off']}, after offset {row['acked_off']} had been "
        "acknowledged with acks=all."
    ),
    tie="j.node, j.leader_epoch",
    compares_times=True,
    needs=("offset_answers", "sends", "states"),
    reads=("vals", "ticks", "parts", "answers", "spans"),
    rests_on=("offset_answers", "sends", "states"),
    reference=_reference,
)
