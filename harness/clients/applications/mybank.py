"""The case study MyBank: an alert for every transaction above its customer's threshold.

Transactions and thresholds are events with the customer as key. Flink SQL joins each transaction
with the threshold that was valid at its time, by an event-time temporal join, and writes the alert
exactly once. The amount of an event is the millisecond of its time, so that the alerts can be
computed anew from the topics alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from urteil.harness.clients.applications.declaration import EXACTLY_ONCE, Application, Context
from urteil.harness.clients.applications.flink_application import (
    FORGETFUL,
    fetch_parts,
    flink_process,
    remaining_with_transactions,
    sink,
    source,
)
from urteil.harness.clients.applications.result_topics import read_topic
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import TopicSpec

TRANSACTIONS, THRESHOLDS, ALERTS = "bank-transactions", "user-thresholds", "alerts"
FIRST = "first-threshold"
"""The variant that compares every transaction with the customer's first threshold."""

DUE_MS = 1_000
"""A transaction has an alert when events of every partition are newer than it by this time."""

AMOUNT = "MOD(EXTRACT(MILLISECOND FROM CAST({table}.ts AS TIMESTAMP(3))), 1000)"
COLUMNS = """key STRING, `value` BYTES, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  part INT METADATA FROM 'partition' VIRTUAL, off BIGINT METADATA FROM 'offset' VIRTUAL,
  WATERMARK FOR ts AS ts"""

VERSIONED = """
CREATE VIEW thresholds AS SELECT key, ts, off FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY key ORDER BY ts {order}) AS age FROM changes)
WHERE age = 1;
"""

JOINED = """
INSERT INTO alerts SELECT t.key,
  CAST(t.part AS STRING) || '-' || CAST(t.off AS STRING) || ' ' || CAST({amount} AS STRING)
    || ' above ' || CAST({limit} AS STRING)
FROM transactions AS t JOIN thresholds FOR SYSTEM_TIME AS OF t.ts AS h ON t.key = h.key
WHERE {amount} > {limit};
"""

EXPECTED = f"""
SELECT 'alerts' AS sink, CONCAT(t.partition, '-', t.off) AS key,
  CONCAT(t.amount, ' above ', t.threshold) AS value, 'each' AS mode,
  CASE WHEN t.timestamp_ms + {DUE_MS} < t.read_ms THEN 1 ELSE 0 END AS due
FROM (
  SELECT t.partition, t.off, t.timestamp_ms, t.timestamp_ms % 1000 AS amount,
    h.timestamp_ms % 1000 AS threshold, e.read_ms,
    ROW_NUMBER() OVER (PARTITION BY t.partition, t.off
      ORDER BY h.timestamp_ms DESC, h.off DESC) AS age
  FROM inputs t
  JOIN inputs h ON h.key = t.key AND h.timestamp_ms <= t.timestamp_ms
  CROSS JOIN (SELECT MIN(m.last_ms) AS read_ms FROM (
    SELECT MAX(i.timestamp_ms) AS last_ms FROM inputs i GROUP BY i.topic, i.partition) m) e
  WHERE t.topic = '{TRANSACTIONS}' AND h.topic = '{THRESHOLDS}') t
WHERE t.age = 1 AND t.amount > t.threshold
"""


def script(context: Context) -> str:
    """The tables, and the join."""
    is_first = ApplicationOptions.of(context.load).variant == FIRST
    return (
        source(context, "transactions", TRANSACTIONS, COLUMNS)
        + source(context, "changes", THRESHOLDS, COLUMNS)
        + VERSIONED.format(order="ASC" if is_first else "DESC")
        + sink(context, "alerts", context.topic(ALERTS), "STRING")
        + JOINED.format(amount=AMOUNT.format(table="t"), limit=AMOUNT.format(table="h"))
    )


def read_alerts(context: Context) -> Iterator[Output]:
    """The alerts, by the place of their transaction."""
    for alert in read_topic(context, context.topic(ALERTS), "alerts"):
        place, _, amounts = (alert.value or "").partition(" ")
        yield msgspec.structs.replace(alert, key=place, value=amounts)


APPLICATION = Application(
    name="mybank",
    about="MyBank: Flink SQL alerts for every transaction above the threshold valid at its time",
    promise=EXACTLY_ONCE,
    processes=(flink_process(script),),
    topics=(TopicSpec(name=ALERTS, config={"min.insync.replicas": "2"}),),
    prepare=fetch_parts,
    remaining=lambda context: remaining_with_transactions(context, context.topic(ALERTS)),
    outputs=read_alerts,
    expected=lambda _scenario: EXPECTED,
    variants=(FIRST, FORGETFUL),
)
