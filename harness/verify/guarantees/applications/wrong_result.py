"""An application's results equal those computed from its input.

Results (counts, windows, joins, rows in a database) do not name the records that they rest on. So a
query that the application declares computes the expected results from the records that its input
finally holds (`harness/verify/expected_outputs.py`). They are compared with what the application
wrote: in a table with the last row of each key, in a stream with every row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import RECORDS, Excuse, Guarantee, Occasion
from urteil.harness.verify.guarantees.losses import LOST_RECORDS
from urteil.harness.verify.plurals import times
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

_SPOILT = """EXISTS (SELECT 1 FROM partitions WHERE losses_ns IS NOT NULL
    AND (workload_topic = 1 OR copies = 1 OR in_run = 0))"""
"""Whether a topic of the workload, an output or an internal topic, such as that of offsets, lost
records. A result does not say on which records it rests."""

_JUDGED = f"""
WITH sinks AS (SELECT expected_outputs.sink, MAX(expected_outputs.mode) AS mode
                 FROM expected_outputs GROUP BY expected_outputs.sink),
-- every row, and whether it is the last one of its key
numbered AS (
  SELECT outputs.sink, COALESCE(outputs.key, '') AS key, outputs.value, outputs.position,
    sinks.mode,
    ROW_NUMBER() OVER (PARTITION BY outputs.sink, COALESCE(outputs.key, '')
      ORDER BY outputs.position DESC, outputs.value DESC) AS age
  FROM outputs JOIN sinks ON sinks.sink = outputs.sink),
-- the rows of each key that are compared
actual AS (
  SELECT numbered.sink, numbered.key, MAX(numbered.mode) AS mode, COUNT(*) AS copies,
    MIN(numbered.value) AS low, MAX(numbered.value) AS high, MAX(numbered.position) AS position
  FROM numbered WHERE numbered.mode = 'each' OR numbered.age = 1 GROUP BY numbered.sink,
    numbered.key),
paired AS (
  SELECT COALESCE(expected_outputs.sink, actual.sink) AS sink,
    COALESCE(expected_outputs.key, actual.key) AS key, expected_outputs.value AS expected,
    CASE WHEN actual.low = expected_outputs.value THEN actual.high ELSE actual.low END AS actual,
      expected_outputs.due, actual.copies, actual.position,
    CASE WHEN expected_outputs.sink IS NULL THEN 1 ELSE 0 END AS is_unexpected
  FROM expected_outputs FULL OUTER JOIN actual ON actual.sink = expected_outputs.sink
    AND actual.key = expected_outputs.key)
SELECT CASE
    WHEN paired.is_unexpected = 1 AND paired.actual IS NOT NULL THEN 'unexpected'
    WHEN paired.is_unexpected = 1 THEN NULL
    WHEN paired.actual IS NULL THEN CASE WHEN paired.due = 1 THEN 'missing' END
    WHEN paired.actual <> paired.expected THEN 'wrong'
    WHEN paired.copies > 1 THEN 'repeated' END AS sub_kind,
  CAST(NULL AS BIGINT) AS p, paired.position AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, paired.sink, paired.key, paired.expected, paired.actual,
  paired.copies,
  CASE WHEN {_SPOILT} THEN 'spoiled' ELSE (SELECT MAX(promise) FROM settings) END AS promised
FROM paired
"""


def _explain(row: Mapping[str, Any]) -> str:
    result = f"{row['sink']}: the result of {row['key']}"
    match row["sub_kind"]:
        case "missing":
            return f"{result} is missing; computed from the input it is {row['expected']}."
        case "unexpected":
            return f"{result} is {row['actual']}, and no record of the input explains it."
        case "repeated":
            return f"{result}, {row['actual']}, was written {times(row['copies'])}."
    return f"{result} is {row['actual']}; computed from the input it is {row['expected']}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Each computed result is in its sink once, or as the last row of its key, and no other is."""
    expected = {(row.sink, row.key): row for row in history.derived_rows("expected_outputs")}
    modes = {row.sink: row.mode for row in expected.values()}
    written: dict[tuple[str, str], list[Row]] = {}
    for row in history.outputs:
        if row.sink in modes:
            written.setdefault((row.sink, row.key or ""), []).append(row)
    for place in expected.keys() | written.keys():
        rows = sorted(written.get(place, []), key=lambda row: int(row.position))
        rows = rows if modes[place[0]] == "each" else rows[-1:]
        kind = _difference(expected.get(place), [row.value for row in rows])
        if kind:
            offset = rows[-1].position if rows else None
            yield Violation(kind, offset=offset, subject=subject_text(*place))


def _difference(expected: Row | None, values: list[str | None]) -> str | None:
    """How the written values of a key differ from the computed one; None was deleted."""
    results = {value for value in values if value is not None}
    if expected is None:
        return "unexpected" if results else None
    if not results:
        return "missing" if expected.due else None
    if results != {expected.value}:
        return "wrong"
    return "repeated" if len(values) > 1 else None


GUARANTEE = Guarantee(
    name="wrong_result",
    rank=10,
    about="a result of an application differs from the same computed from its input",
    promise="Exactly-once processing: the results of an application are those of processing each "
    "record of its input once.",
    source="Kafka documentation, Kafka Streams, Core Concepts: Processing Guarantees; KIP-129, "
    "KIP-447",
    sub_kinds={
        "wrong": "the value of a key differs from the computed one",
        "missing": "a result that was due is not in the output",
        "unexpected": "the output has a key that the input does not give",
        "repeated": "a result that is written once is in the output several times",
    },
    details=(
        "Judged is what committed readers and sinks have after the application processed its "
        "input, or had no progress for 60 s.",
        "Of a table the last row of each key counts, of a stream every row.",
    ),
    not_counted=(
        "At least once: repeated results, and numbers above the computed ones (permitted).",
        "At most once: missing results, and numbers below the computed ones (permitted).",
        "Results of windows that had not closed when the load ended.",
        "Runs in which an unclean election, or a disk that lost records, may have destroyed "
        "inputs, outputs, offsets or an application's internal topics (permitted).",
    ),
    occasion=Occasion.PIPELINE,
    opportunities="SELECT COUNT(*) AS n FROM expected_outputs",
    violations=f"SELECT * FROM ({_JUDGED}) results WHERE sub_kind IS NOT NULL",
    excuses=(
        Excuse(
            when="violation.promised = 'at-least-once' "
            "AND (violation.sub_kind = 'repeated' OR violation.sub_kind = 'wrong'"
            " AND TRY_CAST(violation.actual AS BIGINT) > TRY_CAST(violation.expected AS BIGINT))",
            reason="the application promises at least once",
        ),
        Excuse(
            when="violation.promised = 'at-most-once' "
            "AND (violation.sub_kind = 'missing' OR violation.sub_kind = 'wrong'"
            " AND TRY_CAST(violation.actual AS BIGINT) < TRY_CAST(violation.expected AS BIGINT))",
            reason="the application promises at most once",
        ),
        Excuse(
            when="violation.promised = 'spoiled'",
            reason="an unclean election or a lost disk may have destroyed inputs or offsets",
            reads=("partitions.losses_ns",),
            permits=LOST_RECORDS,
        ),
    ),
    explain=_explain,
    tie="finding.sink, finding.key",
    needs=("sends", "outputs"),
    reads=("outputs", "expected_outputs", "partitions", "settings"),
    rests_on=(*RECORDS, "txns", "outputs"),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.sink, violation.key)",
)
