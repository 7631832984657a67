"""The shared table `expected_outputs`: the results that an application had to compute.

An application declares a query over `inputs` (`Application.expected`) in the dialect of all checks,
so that DuckDB and Spark compute the results from the same text. `inputs` has the records that the
input topics finally hold and that readers of committed records may see:

    value_id, client, op, topic, partition, off, key, timestamp_ms

The query's columns are

- `sink`, `key`, `value`: a result as the row of `outputs` must have it;
- `mode`: `latest` if the last row of a key counts (a table), `each` if every row is a result of its
  own (a stream), the same for all rows of a sink;
- `due`: 1 if the result must be there, 0 if it may be missing, such as that of a window which had
  not closed when the load ended.

A key occurs once in a sink. Rows of `outputs` whose key has no expected row are findings.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from urteil.harness.clients.applications import APPLICATION, application_of
from urteil.harness.scenario import Scenario
from urteil.harness.verify import evidence

SHIFT = 1 << 48

INPUTS = f"""
SELECT v.value_id, v.client, v.op, q.topic, q.partition, v.first_slot % {SHIFT} AS off,
  v.sent_key AS key, COALESCE(l.timestamp_ms, v.timestamp_ms) AS timestamp_ms
FROM vals v JOIN parts q ON q.p = v.sent_p
LEFT JOIN (SELECT r.topic_id, r.partition, r.offset, r.broker, MAX(r.timestamp_ms) AS timestamp_ms
  FROM replicas r GROUP BY r.topic_id, r.partition, r.offset, r.broker) l
  ON l.topic_id = q.topic_id AND l.partition = q.partition AND l.broker = q.final_leader
    AND l.offset = v.first_slot % {SHIFT}
LEFT JOIN txn_p t ON t.client = v.client AND t.session = v.session AND t.txn = v.txn
WHERE v.sent = 1 AND v.log_slots > 0 AND q.ours = 1 AND q.copies = 0
  AND (v.txn IS NULL OR COALESCE(t.fate, '') = 'committed')
"""
"""The timestamp is the stored one, which the application reads: a client may report another one for
a batch that it sent twice."""

EXPECTED_OUTPUTS = f"""
WITH inputs AS ({INPUTS}),
computed AS ({{expected}})
SELECT CAST(c.sink AS STRING) AS sink, CAST(c.key AS STRING) AS key,
  CAST(c.value AS STRING) AS value, CAST(c.mode AS STRING) AS mode, CAST(c.due AS BIGINT) AS due
FROM computed c
"""

NO_EXPECTED_OUTPUTS = pa.schema(
    {name: pa.string() for name in ("sink", "key", "value", "mode")} | {"due": pa.int64()}
)

MADE_UP_SINK = "made up results"
MADE_UP_EXPECTED = f"""
SELECT o.sink, o.key, i.value_id AS value, 'each' AS mode, 0 AS due
FROM inputs i JOIN (SELECT DISTINCT o.sink, o.key FROM outputs o WHERE o.sink = '{MADE_UP_SINK}') o
  ON o.key = i.value_id
"""
"""For damages: an application that writes each key as its value."""


def expected_sql(run_dir: Path, scenario: Scenario) -> str:
    """The query of the results of a run's application; empty if the run has no outputs.

    Outputs of no application are damage: see `harness/verify/damage/outputs.py`.
    """
    if not evidence.row_count(run_dir, "outputs"):
        return ""
    application = None
    if scenario.workload.kind == APPLICATION:
        application = application_of(scenario.workload)
    if application is None or application.expected is None:
        return MADE_UP_EXPECTED
    return application.expected(scenario)
