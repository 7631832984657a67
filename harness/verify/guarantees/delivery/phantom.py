"""Every record was written by a client.

A record that an application copied counts as a copy of a send. Values of a client whose journal
is damaged are ignored, since their invocations may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, numbered, place
from urteil.harness.verify.reference import SmallHistory, Violation, chosen_partition, place_of

_ELSEWHERE = f"""(
  (v.sent_p IS NOT NULL
   AND (v.shown_slot DIV {SLOT} <> v.sent_p OR v.shown_last DIV {SLOT} <> v.sent_p))
  OR (v.intended_p IS NOT NULL AND v.shown_slot DIV {SLOT} <> v.intended_p))"""

_KEYS = """
SELECT e.value_id, MIN(e.shown) AS low, MAX(e.shown) AS high, COUNT(*) - COUNT(e.shown) AS bare
FROM (SELECT r.value_id, r.key AS shown FROM reads r
      UNION ALL SELECT l.value_id, l.key FROM replicas l) e
WHERE e.value_id IN (SELECT v.value_id FROM irregular_values v WHERE v.rekeyed = 1)
GROUP BY e.value_id
"""
"""Under which keys values were seen that somebody saw under another one, or with another time; how
often without one, which is not an empty one."""

_OTHER_KEY = """(k.low <> v.sent_key OR k.high <> v.sent_key
  OR (k.bare > 0 AND v.sent_key IS NOT NULL) OR (k.low IS NOT NULL AND v.sent_key IS NULL))"""

_COPIED = """
SELECT 'copy/' || w.value_id AS copy_id FROM vals w
WHERE w.sent = 1 AND EXISTS (SELECT 1 FROM parts o WHERE o.copies = 1)
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
    """A value that a reader received, or that lies on a disk, was sent there under that key.

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
    opportunities=numbered("FROM vals v WHERE v.shown_slot IS NOT NULL"),
    violations=f"""
SELECT CASE WHEN v.sent = 0 THEN 'no invocation'
    WHEN {_ELSEWHERE}
    THEN 'another partition' ELSE 'another key' END AS sub_kind,
  v.shown_slot DIV {SLOT} AS p, v.shown_slot % {SLOT} AS off,
  COALESCE(v.invoke_ns, v.read_ns) AS at_ns, COALESCE(v.read_ns, v.complete_ns) AS until_ns,
  v.value_id, v.client, v.sent_key, v.sent_p,
  CASE WHEN k.low <> COALESCE(v.sent_key, k.low || '.') THEN k.low
    WHEN k.high <> v.sent_key THEN k.high END AS key_shown
FROM irregular_values v LEFT JOIN ({_KEYS}) k ON k.value_id = v.value_id
WHERE v.shown_slot IS NOT NULL
  AND v.value_id NOT LIKE 'copy/%'
  AND ((v.sent = 0 AND split_part(v.value_id, '/', 2) NOT IN (SELECT d.client FROM damaged d))
    OR {_ELSEWHERE}
    OR {_OTHER_KEY})
UNION ALL
SELECT 'no invocation', v.shown_slot DIV {SLOT}, v.shown_slot % {SLOT}, v.read_ns, v.read_ns,
  v.value_id, NULL, NULL, NULL, NULL
FROM irregular_values v LEFT JOIN ({_COPIED}) w ON w.copy_id = v.value_id
WHERE v.shown_slot IS NOT NULL AND v.value_id LIKE 'copy/%' AND w.copy_id IS NULL
  AND split_part(v.value_id, '/', 3) NOT IN (SELECT d.client FROM damaged d)""",
    explain=_explain,
    reads=("vals", "irregular_values", "kinds", "parts", "damaged", "reads", "replicas"),
    rests_on=("sends", "reads", "replicas"),
    reference=_reference,
)
