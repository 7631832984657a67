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
SELECT records.value_id, records.client, records.op, partitions.topic, partitions.partition,
  records.first_slot % {SHIFT} AS off, records.sent_key AS key,
  COALESCE(stored_times.timestamp_ms, records.timestamp_ms) AS timestamp_ms
FROM records JOIN partitions ON partitions.p = records.sent_p
LEFT JOIN (SELECT replicas.topic_id, replicas.partition, replicas.offset, replicas.broker,
             MAX(replicas.timestamp_ms) AS timestamp_ms
  FROM replicas GROUP BY replicas.topic_id, replicas.partition, replicas.offset,
    replicas.broker) stored_times
  ON stored_times.topic_id = partitions.topic_id AND stored_times.partition = partitions.partition
    AND stored_times.broker = partitions.final_leader
    AND stored_times.offset = records.first_slot % {SHIFT}
LEFT JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
WHERE records.sent = 1 AND records.log_slots > 0 AND partitions.in_run = 1 AND partitions.copies = 0
  AND (records.txn IS NULL OR COALESCE(transactions.fate, '') = 'committed')
"""
"""The timestamp is the stored one, which the application reads: a client may report another one for
a batch that it sent twice."""

EXPECTED_OUTPUTS = f"""
WITH inputs AS ({INPUTS}),
computed AS ({{expected}})
SELECT CAST(computed.sink AS STRING) AS sink, CAST(computed.key AS STRING) AS key,
  CAST(computed.value AS STRING) AS value, CAST(computed.mode AS STRING) AS mode,
  CAST(computed.due AS BIGINT) AS due
FROM computed
"""

NO_EXPECTED_OUTPUTS = pa.schema(
    {name: pa.string() for name in ("sink", "key", "value", "mode")} | {"due": pa.int64()}
)

MADE_UP_SINK = "made up results"
MADE_UP_EXPECTED = f"""
SELECT made_up_keys.sink, made_up_keys.key, inputs.value_id AS value, 'each' AS mode, 0 AS due
FROM inputs JOIN (SELECT DISTINCT outputs.sink, outputs.key FROM outputs
                    WHERE outputs.sink = '{MADE_UP_SINK}') made_up_keys
  ON made_up_keys.key = inputs.value_id
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
