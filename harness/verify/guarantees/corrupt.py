"""What comes out carries the checksum that went in, and the time, unless brokers stamp it."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee, place

GUARANTEE = Guarantee(
    name="corrupt",
    about="a record is not what was sent, by its checksum or its time",
    promise="Record batches carry a CRC-32C over their content, which the broker checks before it "
    "appends and the consumer when it reads.",
    source="Kafka documentation, 5.3 Message Format: Record Batch; KIP-98",
    opportunities="SELECT COALESCE(SUM(s.n_reads + s.copies), 0) AS n FROM slots s "
    "JOIN parts q ON q.p = s.p WHERE q.read_log = 0",
    violations="""
SELECT CASE WHEN s.broken_read > 0 THEN 'served' ELSE 'on disk' END AS sub_kind, s.p, s.off,
  s.read_ns AS at_ns, s.read_ns AS until_ns, s.value_id, s.broken_read, s.broken_disk,
  q.foreign_on
FROM slots s JOIN parts q ON q.p = s.p WHERE s.broken_read > 0 OR s.broken_disk > 0""",
    permitted="CASE WHEN x.value_id IS NULL AND x.foreign_on = 1 "
    "THEN 'others write to this topic: a record that names no send of this run may be theirs' END",
    explain=lambda row: (
        f"{place(row)} ({row['value_id'] or 'unreadable'}) fails its checksum, or has another "
        f"time: in {row['broken_read']} reads and in {row['broken_disk']} replicas' logs."
    ),
    needs=(),
    rests_on=("reads", "replicas"),
    sub_kinds=("served", "on disk"),
)
