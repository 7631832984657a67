"""The sequences of a producer in one partition and epoch are consecutive.

Judged in the final leader's log. A cleaner leaves gaps, and neither repeats nor reorders: in a
compacted log sequences and epochs rise. The first sequence may be any: earlier records may be
deleted, and a broker without state of a producer accepts any sequence. Records of
__consumer_offsets have no sequences: Kafka's group coordinators write offsets of transactions with
the producer's id and the base sequence 0 (GroupMetadataManager).

`refused`: an idempotent producer with acks=all, all of whose earlier records in the partition were
acknowledged, received OUT_OF_ORDER_SEQUENCE_NUMBER. This is permitted if one of these records was
lost by a permitted loss, and from a leader that was deposed meanwhile and may not know it. `shared
id`: two producers received one producer id (workloads with a `probe`). `stripped`: records lack the
producer id with which they were sent, by which brokers recognise duplicates (cleaners keep it)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import IDEMPOTENCE
from urteil.harness.verify.guarantees.base import EPOCH, Excuse, Guarantee, place
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.reference import Row, SmallHistory, Violation

_JUDGED = """
FROM slots JOIN partitions ON partitions.p = slots.p
WHERE slots.on_leader = 1 AND slots.pseq IS NOT NULL AND slots.marks < 2
  AND COALESCE(partitions.topic, '') <> '__consumer_offsets'
"""
_LAST = EPOCH // 2 - 1
_ERROR = "UPPER(REPLACE(COALESCE(records.error, ''), '_', ''))"
_LOST_SENDS = """
SELECT records.sent_p AS p, records.client, records.session, MIN(records.op) AS op
  FROM irregular_values records
WHERE records.outcome = 'ok' AND records.log_slots = 0 GROUP BY records.sent_p, records.client,
  records.session
"""
"""The first acknowledged record of each client that is lost: its producer state may be lost,
too."""
_LEADERSHIPS = f"""
SELECT records.value_id, MAX(CASE WHEN spans.leader = records.node THEN 1 ELSE 0 END) AS led
FROM irregular_values records JOIN state_spans spans ON spans.p = records.sent_p
  AND spans.end_ns > records.invoke_ns AND spans.begin_ns <= COALESCE(records.complete_ns,
      {FOREVER_NS})
WHERE records.outcome <> 'ok' AND records.node IS NOT NULL GROUP BY records.value_id
"""
"""Whether the responding broker led the partition while the record was sent."""
_REFUSED = f"""
FROM irregular_values records JOIN partitions ON partitions.p = records.sent_p
JOIN (SELECT records.sent_p AS p, records.client, records.session, MIN(records.op) AS op
        FROM irregular_values records
      WHERE records.sent = 1 AND records.outcome <> 'ok' GROUP BY records.sent_p, records.client,
        records.session) first_failures
  ON first_failures.p = records.sent_p AND first_failures.client = records.client
    AND first_failures.session = records.session AND first_failures.op = records.op
LEFT JOIN ({_LOST_SENDS}) lost_sends ON lost_sends.p = records.sent_p
  AND lost_sends.client = records.client AND lost_sends.session = records.session
LEFT JOIN ({_LEADERSHIPS}) leaderships ON leaderships.value_id = records.value_id
WHERE records.sent = 1 AND records.outcome <> 'ok' AND records.idempotent = 1 AND records.acks = -1
  AND ({_ERROR} LIKE 'OUTOFORDERSEQUENCE%' OR {_ERROR} LIKE 'UNKNOWNPRODUCERID%')
"""
"""The first record of a client to a partition that was not acknowledged, but rejected for its
sequence."""

_STRIPPED = """
SELECT slots.p, MIN(slots.off) AS off, MIN(slots.value_id) AS value_id, sends.client, COUNT(*) AS n
FROM slots JOIN sends ON sends.value_id = slots.value_id AND sends.producer_id >= 0
  AND sends.outcome = 'ok'
WHERE slots.on_leader = 1 AND slots.copies > 0 AND COALESCE(slots.pid, -1) < 0 AND slots.marks < 2
GROUP BY slots.p, sends.client
"""
"""Records without the id of the producer that sent them."""

_ASSIGNED_IDS = (
    "FROM answers WHERE answers.kind = 'producer' AND answers.error IS NULL AND answers.offset >= 0"
)


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "shared id":
        return f"Two or more producers received the id {row['pid']}."
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
    epoch, and its epoch never falls. A record has the producer id with which it was sent.

    Left out: rejections of producers, and the assignment of their ids.
    """
    for partition in history.partitions:
        last: dict[int, tuple[int, int]] = {}
        rows = {(row.offset, row.value_id): row for row in partition.log if row.control is None}
        for row in rows.values():
            if row.sequence is None or row.sequence < 0 or partition.topic == OFFSETS_TOPIC:
                continue
            epoch, sequence = last.get(row.producer_id, (row.producer_epoch, row.sequence - 1))
            if row.producer_epoch < epoch:
                yield partition.violation("epoch fell", row.offset, row.value_id)
            elif row.producer_epoch == epoch and row.sequence <= sequence:
                yield partition.violation("repeated", row.offset, row.value_id)
            elif (
                row.producer_epoch == epoch
                and row.sequence > sequence + 1
                and not partition.is_compacted
            ):
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
        "`gap` in compacted topics.",
        "`__consumer_offsets`: coordinators write offsets of transactions with sequence 0.",
        "`stripped` of clients that do not expose their id.",
        "`refused` where an unclean election or a disk destroyed some of the records, and by a "
        "leader that was deposed meanwhile and may not know it (permitted).",
    ),
    requires=(IDEMPOTENCE,),
    opportunities=f"SELECT SUM(opportunities.n) AS n FROM (SELECT COUNT(*) AS n {_JUDGED} "
    f"UNION ALL SELECT COUNT(*) AS n {_ASSIGNED_IDS}) opportunities",
    violations=f"""
SELECT CASE WHEN sequences.pepoch < sequences.prev_epoch THEN 'epoch fell'
    WHEN sequences.seq <= sequences.prev_seq THEN 'repeated' ELSE 'gap' END AS sub_kind,
  sequences.p, sequences.off, CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns,
  sequences.value_id, sequences.pid, sequences.pepoch, sequences.seq, sequences.prev_epoch,
  sequences.prev_seq, CAST(NULL AS STRING) AS client, 0 AS may_lack, 1 AS led
FROM (SELECT slots.p, slots.off, slots.value_id, slots.pid, slots.pseq DIV {EPOCH} AS pepoch,
        slots.pseq % {EPOCH} AS seq,
        LAG(slots.pseq DIV {EPOCH}) OVER w AS prev_epoch,
        LAG(slots.pseq % {EPOCH}) OVER w AS prev_seq, partitions.compacted
      {_JUDGED} WINDOW w AS (PARTITION BY slots.p, slots.pid ORDER BY slots.off, slots.pseq,
                             slots.value_id)) sequences
WHERE sequences.pepoch < sequences.prev_epoch
  OR (sequences.pepoch = sequences.prev_epoch AND sequences.seq <> sequences.prev_seq + 1
      AND NOT (sequences.compacted = 1 AND sequences.seq > sequences.prev_seq)
      AND NOT (sequences.prev_seq = {_LAST} AND sequences.seq = 0))
UNION ALL
SELECT 'refused', records.sent_p, NULL, records.invoke_ns, records.complete_ns, records.value_id,
  NULL, NULL, NULL, NULL, NULL, records.client, CASE WHEN partitions.losses_ns IS NOT NULL
      AND lost_sends.op < records.op THEN 1 ELSE 0 END,
  COALESCE(leaderships.led, 1)
{_REFUSED}
UNION ALL
SELECT 'stripped', p, off, NULL, NULL, value_id, NULL, NULL, n, NULL, NULL, client, 0, 1
FROM ({_STRIPPED}) stripped_acks
UNION ALL
SELECT 'shared id', MIN(answers.p), NULL, MIN(answers.invoke_ns), MAX(answers.complete_ns), NULL,
  answers.offset, NULL,
  NULL, NULL, NULL, NULL, 0, 1 {_ASSIGNED_IDS} GROUP BY answers.offset HAVING COUNT(*) > 1""",
    excuses=(
        Excuse(when="violation.may_lack = 1", reason="earlier records of the producer may be lost"),
        Excuse(
            when="violation.led = 0",
            reason="the broker that rejected it had been deposed, and may not have known that",
        ),
    ),
    explain=_explain,
    tie="finding.value_id, finding.pid",
    excused_by_times=True,
    needs=("replicas", "logs"),
    reads=(
        *("slots", "irregular_values", "partitions", "answers"),
        *("state_spans", "sends", "partitions.losses_ns"),
    ),
    rests_on=("replicas", "logs", "sends", "clients", "offset_answers", "states"),
    reference=_reference,
    reference_covers=("gap", "repeated", "epoch fell", "stripped"),
)
