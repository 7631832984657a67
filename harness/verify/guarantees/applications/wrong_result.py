"""What an application computes equals the same computed from its input.

An application's results (counts, windows, joins, rows in a database) carry no name of the records
that they rest on. So the expected results are computed anew, by a query that the application
declares, from the records that its input finally holds (`harness/verify/expected_outputs.py`). They
are compared with what the application wrote: in a table the last row of each key, in a stream every
row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import RECORDS, Excuse, Guarantee
from urteil.harness.verify.plurals import times

_SPOILT = "EXISTS (SELECT 1 FROM parts d WHERE d.spoilt_ns IS NOT NULL)"

_JUDGED = f"""
WITH sinks AS (SELECT e.sink, MAX(e.mode) AS mode FROM expected_outputs e GROUP BY e.sink),
-- every row, and whether it is the last one of its key
numbered AS (
  SELECT o.sink, COALESCE(o.key, '') AS key, o.value, o.position, s.mode,
    ROW_NUMBER() OVER (PARTITION BY o.sink, COALESCE(o.key, '')
      ORDER BY o.position DESC, o.value DESC) AS age
  FROM outputs o JOIN sinks s ON s.sink = o.sink),
-- what counts of each key
actual AS (
  SELECT n.sink, n.key, MAX(n.mode) AS mode, COUNT(*) AS copies, MIN(n.value) AS low,
    MAX(n.value) AS high, MAX(n.position) AS position
  FROM numbered n WHERE n.mode = 'each' OR n.age = 1 GROUP BY n.sink, n.key),
paired AS (
  SELECT COALESCE(e.sink, a.sink) AS sink, COALESCE(e.key, a.key) AS key, e.value AS expected,
    CASE WHEN a.low = e.value THEN a.high ELSE a.low END AS actual, e.due, a.copies, a.position,
    CASE WHEN e.sink IS NULL THEN 1 ELSE 0 END AS is_unexpected
  FROM expected_outputs e FULL OUTER JOIN actual a ON a.sink = e.sink AND a.key = e.key)
SELECT CASE
    WHEN d.is_unexpected = 1 AND d.actual IS NOT NULL THEN 'unexpected'
    WHEN d.is_unexpected = 1 THEN NULL
    WHEN d.actual IS NULL THEN CASE WHEN d.due = 1 THEN 'missing' END
    WHEN d.actual <> d.expected THEN 'wrong'
    WHEN d.copies > 1 THEN 'repeated' END AS sub_kind,
  CAST(NULL AS BIGINT) AS p, d.position AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, d.sink, d.key, d.expected, d.actual, d.copies,
  CASE WHEN {_SPOILT} THEN 'spoiled' ELSE (SELECT MAX(z.promise) FROM settings z) END AS promised
FROM paired d
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
        "inputs, outputs or offsets (permitted).",
    ),
    opportunities="SELECT COUNT(*) AS n FROM expected_outputs e",
    violations=f"SELECT j.* FROM ({_JUDGED}) j WHERE j.sub_kind IS NOT NULL",
    excuses=(
        Excuse(
            when="x.promised = 'at-least-once' AND (x.sub_kind = 'repeated' OR x.sub_kind = 'wrong'"
            " AND CAST(x.actual AS BIGINT) > CAST(x.expected AS BIGINT))",
            reason="the application promises at least once",
        ),
        Excuse(
            when="x.promised = 'at-most-once' AND (x.sub_kind = 'missing' OR x.sub_kind = 'wrong'"
            " AND CAST(x.actual AS BIGINT) < CAST(x.expected AS BIGINT))",
            reason="the application promises at most once",
        ),
        Excuse(
            when="x.promised = 'spoiled'",
            reason="an unclean election or a lost disk may have destroyed inputs or offsets",
            reads=("parts.spoilt_ns",),
        ),
    ),
    explain=_explain,
    tie="j.sink, j.key",
    needs=("sends", "outputs"),
    reads=("outputs", "expected_outputs", "parts", "settings"),
    rests_on=(*RECORDS, "txns", "outputs"),
)
