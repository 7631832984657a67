"""Every record was written by a client.

A record that an application copied counts as a copy of a send. Values of a client whose journal
is damaged are ignored, since their invocations may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, count_records, place
from urteil.harness.verify.reference import SmallHistory, Violation, chosen_partition, place_of

_ELSEWHERE = f"""(
  (records.sent_p IS NOT NULL
   AND (records.shown_slot DIV {SLOT} <> records.sent_p
        OR records.shown_last DIV {SLOT} <> records.sent_p))
  OR (records.intended_p IS NOT NULL AND records.shown_slot DIV {SLOT} <> records.intended_p))"""

_KEYS = """
SELECT value_id, MIN(shown) AS low, MAX(shown) AS high, COUNT(*) - COUNT(shown) AS bare
FROM (SELECT reads.value_id, reads.key AS shown FROM reads
      UNION ALL SELECT replicas.value_id, replicas.key FROM replicas) copies
WHERE value_id IN (SELECT value_id FROM irregular_values WHERE rekeyed = 1)
GROUP BY value_id
"""
"""The keys of values that were seen with several keys or timestamps, and the number of copies
without a key (`bare`). An empty key is a key."""

_OTHER_KEY = """(shown_keys.low <> records.sent_key OR shown_keys.high <> records.sent_key
  OR (shown_keys.bare > 0 AND records.sent_key IS NOT NULL)
    OR (shown_keys.low IS NOT NULL AND records.sent_key IS NULL))"""

_COPIED = """
SELECT 'copy/' || records.value_id AS copy_id FROM records
WHERE records.sent = 1 AND EXISTS (SELECT 1 FROM partitions WHERE copies = 1)
"""


def _key(key: str | None) -> str:
    return "no key" if key is None else f"the key {key!r}"


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "no invocation":
        return f"{place(row)} shows {row['value_id']}, which no client of this run ever sent."
    if row["sub_kind"] == "another key":
        return (
            f"{place(row)} shows {row['value_id']} under {_key(row['key_shown'])}; "
            f"it was sent under {_key(row['sent_key'])}."
        )
    return f"{place(row)} shows {row['value_id']}, which was sent to another partition."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A value that a reader received, or that is on a disk, was sent there under that key.

    Left out: topics of copies, and clients whose journal was cut.
    """
    for value in {*history.reads_of, *history.copies_of}:
        rows = sorted(history.reads_of[value] + history.copies_of[value], key=place_of)
        topic, partition, offset = place_of(rows[0])
        send = history.sends_by_value.get(value)
        if send is None:
            kind = "no invocation"
        elif any(
            (row.topic, row.partition) != (send.topic, chosen_partition(send)) for row in rows
        ) or send.partition_intended not in (None, partition):
            kind = "another partition"
        elif {row.key for row in rows} != {send.key}:
            kind = "another key"
        else:
            continue
        yield Violation(kind, topic, partition, offset, value)


GUARANTEE = Guarantee(
    name="phantom",
    rank=40,
    about="a record appears that no client sent, or in another partition, or under another key",
    promise="A consumer sees the records that producers published to that partition, unaltered.",
    source="Kafka documentation, 1.1 Introduction: main concepts; 5.3 Record batch",
    sub_kinds={
        "no invocation": "no client of the run sent the value",
        "another partition": "sent to another partition",
        "another key": "sent under another key, or without one",
    },
    details=(
        "A value without an invocation, in another partition or under another key than it was "
        "sent, or the payload of another run. No key and an empty key differ.",
    ),
    not_counted=("Values of a client whose journal was cut.",),
    opportunities=count_records("FROM records WHERE records.shown_slot IS NOT NULL"),
    violations=f"""
SELECT CASE WHEN records.sent = 0 THEN 'no invocation'
    WHEN {_ELSEWHERE}
    THEN 'another partition' ELSE 'another key' END AS sub_kind,
  records.shown_slot DIV {SLOT} AS p, records.shown_slot % {SLOT} AS off,
  COALESCE(records.invoke_ns, records.read_ns) AS at_ns,
  COALESCE(records.read_ns, records.complete_ns) AS until_ns, records.value_id, records.client,
  records.sent_key, records.sent_p,
  CASE WHEN shown_keys.low <> COALESCE(records.sent_key, shown_keys.low || '.') THEN shown_keys.low
    WHEN shown_keys.high <> records.sent_key THEN shown_keys.high END AS key_shown
FROM irregular_values records LEFT JOIN ({_KEYS}) shown_keys
  ON shown_keys.value_id = records.value_id
WHERE records.shown_slot IS NOT NULL
  AND records.value_id NOT LIKE 'copy/%'
  AND ((records.sent = 0 AND split_part(records.value_id, '/', 2) NOT IN (SELECT client
                                            FROM damaged))
    OR {_ELSEWHERE}
    OR {_OTHER_KEY})
UNION ALL
SELECT 'no invocation', records.shown_slot DIV {SLOT}, records.shown_slot % {SLOT}, records.read_ns,
  records.read_ns, records.value_id, NULL, NULL, NULL, NULL
FROM irregular_values records LEFT JOIN ({_COPIED}) copied_records
  ON copied_records.copy_id = records.value_id
WHERE records.shown_slot IS NOT NULL AND records.value_id LIKE 'copy/%'
  AND copied_records.copy_id IS NULL
  AND split_part(records.value_id, '/', 3) NOT IN (SELECT client FROM damaged)""",
    explain=_explain,
    reads=(
        *("records", "irregular_values", "record_counts", "partitions"),
        *("damaged", "reads", "replicas"),
    ),
    rests_on=("sends", "reads", "replicas"),
    reference=_reference,
)
