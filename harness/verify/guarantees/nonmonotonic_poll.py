"""A consumer's position goes back only when somebody moved it, as to the begin of a new pass."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import LOSS, Guarantee, place
from urteil.harness.verify.guarantees.poll_skip import NO_EVENT

GUARANTEE = Guarantee(
    name="nonmonotonic_poll",
    about="a consumer's position went back without seek, reset or rebalance",
    promise="The position of the consumer advances automatically every time it receives messages "
    "in a call to poll.",
    source="KafkaConsumer, Offsets and Consumer Position; Kafka documentation, 4.5 The Consumer",
    opportunities="SELECT COUNT(*) AS n FROM reads r",
    violations=f"""
SELECT 'reads' AS sub_kind, g.p, g.off, g.prev_read_ns AS at_ns, g.read_ns AS until_ns, g.client,
  g.session, g.poll, g.value_id, g.prev_off, q.unclean_on, q.unclean_floor,
  q.lost_floor, q.spoilt_ns
FROM gaps g JOIN parts q ON q.p = g.p WHERE g.off <= g.prev_off AND {NO_EVENT}
UNION ALL
SELECT 'position', l.p, l.position_before, l.prev_ns, l.invoke_ns, l.client, l.session, l.poll,
  CAST(NULL AS STRING), l.prev_after, l.unclean_on, l.unclean_floor,
  l.lost_floor, l.spoilt_ns
FROM (SELECT e.client, e.session, e.poll, e.position_before, e.invoke_ns, e.event, r.p,
        r.unclean_on, r.unclean_floor, r.lost_floor, r.spoilt_ns,
        LAG(e.position_after) OVER w AS prev_after,
        LAG(e.event) OVER w AS prev_event, LAG(e.complete_ns) OVER w AS prev_ns
      FROM polls e JOIN parts r ON e.topic_id = r.topic_id AND e.partition = r.partition
      WINDOW w AS (PARTITION BY e.client, e.session, r.p ORDER BY e.poll)) l
WHERE l.position_before < l.prev_after AND l.event IS NULL AND l.prev_event IS NULL
  AND NOT EXISTS (SELECT 1 FROM passes b JOIN parts r ON r.topic_id = b.topic_id
                    AND r.partition = b.partition
                  WHERE b.client = l.client AND b.session = l.session AND r.p = l.p
                    AND b.from_offset = l.position_before AND b.begin_ns >= l.prev_ns
                    AND b.begin_ns <= l.invoke_ns)""",
    permitted=LOSS,
    explain=lambda row: (
        f"{row['client']} stood after offset {row['prev_off']} of {row['topic']}-"
        f"{row['partition']} and then was given {place(row)}, without seek, reset or rebalance."
    ),
    needs=("reads",),
    rests_on=("reads", "polls", "clients"),
    sub_kinds=("reads", "position"),
    tie="j.client, j.poll",
)
