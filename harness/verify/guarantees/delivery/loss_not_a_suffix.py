"""An unclean election loses a suffix: the records that the new leader lacked from its epoch's
start.

Judged where an unclean election happened. A lost record below the start of every unclean epoch
that began after its send is more than any of these elections could lose."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee, numbered, place
from urteil.harness.verify.guarantees.delivery.lost_write import LOST

GUARANTEE = Guarantee(
    name="loss_not_a_suffix",
    rank=30,
    about="an unclean election lost records below the start of its epoch",
    promise="Unclean leader election may lose the messages that the new leader did not have; what "
    "lies below the point where their logs part is kept.",
    source="Kafka documentation, 4.7 Replication: Unclean leader election; KIP-101",
    sub_kinds={
        "below the epoch": "lost below the start of every unclean epoch after its send",
    },
    details=(
        "Judged are acks=all records of runs with unclean election: a lost one must not be below "
        "the start of every unclean epoch that began after its send.",
    ),
    not_counted=("Runs without unclean election.",),
    opportunities=numbered(
        "FROM vals v JOIN parts q ON q.p = v.sent_p WHERE v.outcome = 'ok' AND v.acks = -1 "
        "AND q.unclean_on = 1 AND q.unclean_floor < q.log_end"
    ),
    violations=f"""
SELECT 'below the epoch' AS sub_kind, l.p, l.off, l.at_ns, l.until_ns, l.value_id, l.client,
  l.unclean_floor
FROM ({LOST}) l JOIN parts q ON q.p = l.p
WHERE l.unclean_on = 1 AND l.acks = -1 AND l.log_slots = 0 AND l.off < l.unclean_floor
  AND q.unclean_floor < q.log_end""",
    explain=lambda row: (
        f"{row['value_id']} was acknowledged with acks=all at {place(row)} and is lost, below "
        "where any unclean epoch after it began."
    ),
    excused_by_times=True,
    needs=("sends", "replicas", "states"),
    reads=(
        *(
            "slots",
            "irregular_values",
            "known_commits",
            "unplaced",
            "kinds",
            "ticks",
            "parts",
            "floors",
        ),
        *("parts.flushed_ns", "parts.lost_floor", "parts.spoilt_ns", "parts.unclean_on"),
    ),
)
