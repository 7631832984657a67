"""The position of a consumer decreases only when it was moved, as at the begin of a new pass.

A consumer does not get OFFSET_OUT_OF_RANGE at its position, which makes it begin elsewhere,
while the log continued there all the time: the records that it had read before were committed,
and every later leader has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place, union
from urteil.harness.verify.guarantees.delivery.poll_skip import NO_EVENT
from urteil.harness.verify.guarantees.losses import LOSSES

_SENT_AWAY = """
SELECT l.p, l.off, l.at_ns, l.until_ns, l.client, l.session, l.poll, l.value_id
FROM (SELECT q.p, r.offset AS off, r.read_ns AS at_ns, f.complete_ns AS until_ns, e.client,
        e.session, f.poll, r.value_id, e.topic_id, e.partition, ROW_NUMBER() OVER (
          PARTITION BY e.client, e.session, q.p, e.poll ORDER BY r.poll DESC,
          r.position_in_poll DESC, f.poll) AS n
      FROM polls e JOIN parts q ON q.topic_id = e.topic_id AND q.partition = e.partition
      JOIN polls f ON f.client = e.client AND f.session = e.session AND f.poll < e.poll
        AND f.outcome = 'fail' AND f.error IN ('OffsetOutOfRangeError', 'LogTruncationError')
      JOIN reads r ON r.client = e.client AND r.session = e.session
        AND r.topic_id = e.topic_id AND r.partition = e.partition AND r.poll < f.poll
      WHERE e.event = 'reset') l
JOIN parts q ON q.p = l.p
WHERE l.n = 1 AND l.off + 1 >= q.one_start AND l.off + 1 <= q.log_end
  AND NOT EXISTS (SELECT 1 FROM assignments a WHERE a.client = l.client AND a.session = l.session
                  AND a.topic_id = l.topic_id AND a.partition = l.partition
                  AND a.at_ns >= l.at_ns AND a.at_ns <= l.until_ns)
"""
"""The last record of a partition that a client received before an out-of-range error at its
position. The offsets after it are in the final log, whose start is unchanged since."""

_OF_READS = f"""
SELECT 'reads' AS sub_kind, g.p, g.off, g.prev_read_ns AS at_ns, g.read_ns AS until_ns, g.client,
  g.session, g.poll, g.value_id, g.prev_off, q.unclean_on, q.unclean_floor,
  q.lost_floor, q.spoilt_ns
FROM gaps g JOIN parts q ON q.p = g.p WHERE g.off <= g.prev_off AND {NO_EVENT}"""
"""Reads at or below the previous offset of their consumer."""

_OF_POSITIONS = """
SELECT 'position', l.p, l.position_before, l.prev_ns, l.invoke_ns, l.client, l.session, l.poll,
  CAST(NULL AS STRING), l.prev_after, l.unclean_on, l.unclean_floor,
  l.lost_floor, l.spoilt_ns
FROM (SELECT e.client, e.session, e.poll, e.position_before, e.invoke_ns, e.complete_ns,
        e.event, r.p, r.unclean_on, r.unclean_floor, r.lost_floor, r.spoilt_ns,
        LAG(e.position_after) OVER w AS prev_after,
        LAG(e.event) OVER w AS prev_event, LAG(e.complete_ns) OVER w AS prev_ns,
        LAG(e.poll) OVER w AS prev_poll
      FROM polls e JOIN parts r ON e.topic_id = r.topic_id AND e.partition = r.partition
      WINDOW w AS (PARTITION BY e.client, e.session, r.p ORDER BY e.poll)) l
WHERE l.position_before < l.prev_after AND l.event IS NULL AND l.prev_event IS NULL
  AND l.prev_poll < l.poll
  AND NOT EXISTS (SELECT 1 FROM passes b JOIN parts r ON r.topic_id = b.topic_id
                    AND r.partition = b.partition
                  WHERE b.client = l.client AND b.session = l.session AND r.p = l.p
                    AND b.from_offset = l.position_before AND b.begin_ns >= l.prev_ns
                    AND b.begin_ns <= l.invoke_ns)
  AND NOT EXISTS (SELECT 1 FROM assignments a JOIN parts r ON r.topic_id = a.topic_id
                    AND r.partition = a.partition
                  WHERE a.client = l.client AND a.session = l.session AND r.p = l.p
                    AND a.at_ns >= l.prev_ns AND a.at_ns <= l.complete_ns)
  AND NOT EXISTS (SELECT 1 FROM polls u WHERE u.client = l.client AND u.session = l.session
                  AND u.event IS NOT NULL AND (u.topic_id IS NULL OR u.partition IS NULL)
                  AND u.poll >= l.prev_poll AND u.poll <= l.poll)"""
"""Polls that begin below the end of the previous poll, without an event or a new pass between."""

_OUT_OF_RANGE = f"""
SELECT 'out of range', k.p, k.off, k.at_ns, k.until_ns, k.client, k.session, k.poll, k.value_id,
  CAST(NULL AS BIGINT), q.unclean_on, q.unclean_floor, q.lost_floor, q.spoilt_ns
FROM ({_SENT_AWAY}) k JOIN parts q ON q.p = k.p"""
"""Consumers that an out-of-range error within the log sent elsewhere."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "out of range":
        return (
            f"{row['client']} received {place(row)}, and then an out-of-range error at its "
            "position, although every log continues there."
        )
    return (
        f"{row['client']} stood after offset {row['prev_off']} of {row['topic']}-"
        f"{row['partition']} and then received {place(row)}, without seek, reset or rebalance."
    )


GUARANTEE = Guarantee(
    name="nonmonotonic_poll",
    rank=160,
    about="the position of a consumer decreased without seek, reset or rebalance",
    promise="The position of the consumer advances automatically every time it receives messages "
    "in a call to poll.",
    source="KafkaConsumer, Offsets and Consumer Position; Kafka documentation, 4.5 The Consumer",
    sub_kinds={
        "reads": "a consumer got an offset at or below its last one",
        "position": "its position fell",
        "out of range": (
            "a consumer of kafka-python got the answer that its position does not exist and began "
            "elsewhere, though the final log goes on there and began where it did"
        ),
    },
    not_counted=(
        "Moves after a seek, a reset or a rebalance, or in another generation.",
        "A position at which another pass of that client began meanwhile.",
        "`out of range` where an administrator deleted records, and for what an unclean election "
        "or a disk destroyed.",
    ),
    opportunities="SELECT COUNT(*) AS n FROM reads r",
    violations=union(_OF_READS, _OF_POSITIONS, _OUT_OF_RANGE),
    excuses=LOSSES,
    explain=_explain,
    tie="j.client, j.poll",
    excused_by_times=True,
    needs=("reads",),
    reads=("gaps", "parts", "reads", "passes", "polls", "assignments"),
    rests_on=("reads", "polls", "clients", "assignments", "logs"),
)
