"""The sequences of a producer in one partition and epoch are consecutive.

Judged in the final leader's log, where it was not compacted. The first sequence may be any:
earlier records may be deleted, and a broker without state of a producer accepts any sequence.

`refused`: an idempotent producer with acks=all, all of whose earlier records in the partition
were acknowledged, got OUT_OF_ORDER_SEQUENCE_NUMBER. This is permitted where one of these records
is lost and may be, and from a leader that was deposed meanwhile and may not know it. `shared
id`: two producers received one producer id (workloads with a `probe`). `stripped`: records lack
the producer id with which they were sent, by which brokers recognise duplicates (cleaners keep
it)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import IDEMPOTENCE
from urteil.harness.verify.guarantees.base import EPOCH, Excuse, Guarantee, place
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.reference import Row, SmallHistory, Violation

_JUDGED = """
FROM slots s JOIN parts q ON q.p = s.p
WHERE s.on_leader = 1 AND s.pseq IS NOT NULL AND s.marks < 2 AND q.compacted = 0
"""
_LAST = EPOCH // 2 - 1
_TOLD = "UPPER(REPLACE(COALESCE(v.error, ''), '_', ''))"
_LACKS = """
SELECT v.sent_p AS p, v.client, v.session, MIN(v.op) AS op FROM irregular_values v
WHERE v.outcome = 'ok' AND v.log_slots = 0 GROUP BY v.sent_p, v.client, v.session
"""
"""The first record that a client was acknowledged and that is lost: what knew of it was, too."""
_IN_OFFICE = f"""
SELECT v.value_id, MAX(CASE WHEN s.leader = v.node THEN 1 ELSE 0 END) AS led
FROM irregular_values v JOIN spans s ON s.p = v.sent_p AND s.end_ns > v.invoke_ns
  AND s.begin_ns <= COALESCE(v.complete_ns, {FOREVER_NS})
WHERE v.outcome <> 'ok' AND v.node IS NOT NULL GROUP BY v.value_id
"""
"""Whether the responding broker led the partition while the record was sent."""
_REFUSED = f"""
FROM irregular_values v JOIN parts q ON q.p = v.sent_p
JOIN (SELECT v.sent_p AS p, v.client, v.session, MIN(v.op) AS op FROM irregular_values v
      WHERE v.sent = 1 AND v.outcome <> 'ok' GROUP BY v.sent_p, v.client, v.session) f
  ON f.p = v.sent_p AND f.client = v.client AND f.session = v.session AND f.op = v.op
LEFT JOIN ({_LACKS}) k ON k.p = v.sent_p AND k.client = v.client AND k.session = v.session
LEFT JOIN ({_IN_OFFICE}) o ON o.value_id = v.value_id
WHERE v.sent = 1 AND v.outcome <> 'ok' AND v.idempotent = 1 AND v.acks = -1
  AND ({_TOLD} LIKE 'OUTOFORDERSEQUENCE%' OR {_TOLD} LIKE 'UNKNOWNPRODUCERID%')
"""
"""A client's first record to a partition that was not acknowledged, refused for its sequence."""

_STRIPPED = """
SELECT s.p, MIN(s.off) AS off, MIN(s.value_id) AS value_id, v.client, COUNT(*) AS n
FROM slots s JOIN sends v ON v.value_id = s.value_id AND v.producer_id >= 0 AND v.outcome = 'ok'
WHERE s.on_leader = 1 AND s.copies > 0 AND COALESCE(s.pid, -1) < 0 AND s.marks < 2
GROUP BY s.p, v.client
"""
"""Where records lie without the id of the producer that sent them."""

_GIVEN = "FROM answers a WHERE a.kind = 'producer' AND a.error IS NULL AND a.offset >= 0"


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "shared id":
        return f"Two producers, or more, were given the id {row['pid']}."
    if row["sub_kind"] == "refused":
        return (
            f"{row['value_id']} was refused by {row['topic']}-{row['partition']} as out of order, "
            f"although all that {row['client']} had sent there before was acknowledged."
        )
    if row["sub_kind"] == "stripped":
        return (
            f"{row['value_id']} lies at {place(row)} without the producer id that {row['client']} "
            f"sent it with: the first of {row['seq']} that do so there."
        )
    return (
        f"At {place(row)} producer {row['pid']} goes from epoch {row['prev_epoch']}, sequence "
        f"{row['prev_seq']} to epoch {row['pepoch']}, sequence {row['seq']}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """In the final leader's log, the sequences of a producer's records follow each other within an
    epoch, and its epoch never falls. A record has the producer id that it was sent with.

    Left out: what producers were refused for, and the ids that they were given.
    """
    for partition in history.partitions:
        last: dict[int, tuple[int, int]] = {}
        rows = {(row.offset, row.value_id): row for row in partition.log if row.control is None}
        for row in () if partition.is_compacted else rows.values():
            if row.sequence is None or row.sequence < 0:
                continue
            epoch, sequence = last.get(row.producer_id, (row.producer_epoch, row.sequence - 1))
            if row.producer_epoch < epoch:
                yield partition.violation("epoch fell", row.offset, row.value_id)
            elif row.producer_epoch == epoch and row.sequence <= sequence:
                yield partition.violation("repeated", row.offset, row.value_id)
            elif row.producer_epoch == epoch and row.sequence > sequence + 1:
                yield partition.violation("gap", row.offset, row.value_id)
            last[row.producer_id] = (row.producer_epoch, row.sequence)
        stripped: dict[str, list[Row]] = {}
        for row in rows.values():
            send = history.sends_by_value.get(row.value_id)
            was_sent_with = send is not None and send.outcome == "ok" and _is_id(send.producer_id)
            if send is not None and was_sent_with and not _is_id(row.producer_id):
                stripped.setdefault(send.client, []).append(row)
        for lost in stripped.values():
            value = min(row.value_id for row in lost)
            yield partition.violation("stripped", min(row.offset for row in lost), value)


def _is_id(producer_id: int | None) -> bool:
    return producer_id is not None and producer_id >= 0


GUARANTEE = Guarantee(
    name="sequence_gap",
    rank=130,
    about="a producer's sequence numbers in a log are not contiguous",
    promise="The broker accepts a produce request only if its sequence number is exactly one "
    "greater than the last committed message from that producer and partition; each new producer "
    "is assigned a unique id.",
    source="KIP-98: Idempotent Producer Guarantees",
    sub_kinds={
        "gap": "a sequence is missing",
        "repeated": "a sequence occurs again, or a lower one follows",
        "epoch fell": "the producer epoch decreases",
        "refused": (
            "an idempotent producer with acks=all was rejected for its sequence, although "
            "everything that it had sent to the partition before was acknowledged"
        ),
        "stripped": "records are in the log without the id that their producer sent",
        "shared id": "two producers got one id",
    },
    details=(
        "`gap`, `repeated` and falling epochs: a producer's sequences in the final leader's log "
        "must be contiguous.",
    ),
    not_counted=(
        "The first sequence that the log has.",
        "Compacted topics, except for `stripped`.",
        "`stripped` of clients that do not expose their id.",
        "`refused` where an unclean election or a disk destroyed some of the records, and by a "
        "leader that was deposed meanwhile and may not know it (permitted).",
    ),
    requires=(IDEMPOTENCE,),
    opportunities=f"SELECT SUM(u.n) AS n FROM (SELECT COUNT(*) AS n {_JUDGED} "
    f"UNION ALL SELECT COUNT(*) AS n {_GIVEN}) u",
    violations=f"""
SELECT CASE WHEN g.pepoch < g.prev_epoch THEN 'epoch fell'
    WHEN g.seq <= g.prev_seq THEN 'repeated' ELSE 'gap' END AS sub_kind,
  g.p, g.off, CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns, g.value_id, g.pid,
  g.pepoch, g.seq, g.prev_epoch, g.prev_seq, CAST(NULL AS STRING) AS client, 0 AS may_lack,
  1 AS led
FROM (SELECT s.p, s.off, s.value_id, s.pid, s.pseq DIV {EPOCH} AS pepoch, s.pseq % {EPOCH} AS seq,
        LAG(s.pseq DIV {EPOCH}) OVER w AS prev_epoch, LAG(s.pseq % {EPOCH}) OVER w AS prev_seq
      {_JUDGED} WINDOW w AS (PARTITION BY s.p, s.pid ORDER BY s.off, s.pseq, s.value_id)) g
WHERE g.pepoch < g.prev_epoch
  OR (g.pepoch = g.prev_epoch AND g.seq <> g.prev_seq + 1
      AND NOT (g.prev_seq = {_LAST} AND g.seq = 0))
UNION ALL
SELECT 'refused', v.sent_p, NULL, v.invoke_ns, v.complete_ns, v.value_id, NULL, NULL, NULL, NULL,
  NULL, v.client, CASE WHEN q.spoilt_ns IS NOT NULL AND k.op < v.op THEN 1 ELSE 0 END,
  COALESCE(o.led, 1)
{_REFUSED}
UNION ALL
SELECT 'stripped', w.p, w.off, NULL, NULL, w.value_id, NULL, NULL, w.n, NULL, NULL, w.client, 0, 1
FROM ({_STRIPPED}) w
UNION ALL
SELECT 'shared id', MIN(a.p), NULL, MIN(a.invoke_ns), MAX(a.complete_ns), NULL, a.offset, NULL,
  NULL, NULL, NULL, NULL, 0, 1 {_GIVEN} GROUP BY a.offset HAVING COUNT(*) > 1""",
    excuses=(
        Excuse(when="x.may_lack = 1", reason="what it had written before may be lost"),
        Excuse(
            when="x.led = 0",
            reason="who refused it had been deposed, and may not have known yet",
        ),
    ),
    explain=_explain,
    tie="j.value_id, j.pid",
    excused_by_times=True,
    needs=("replicas", "logs"),
    reads=("slots", "irregular_values", "parts", "answers", "spans", "sends", "parts.spoilt_ns"),
    rests_on=("replicas", "logs", "sends", "clients", "offset_answers", "states"),
    reference=_reference,
    reference_covers=("gap", "repeated", "epoch fell", "stripped"),
)
