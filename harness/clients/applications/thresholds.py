"""Alerts for events above a threshold, by Flink SQL: what MyBank and TruckGPS share.

Events and thresholds are topics with the same keys, and thresholds are events themselves. An
event-time temporal join compares each event with the threshold that was valid at its time. Flink
writes the alert exactly once. Both values are computed from the milliseconds of their event's time,
so that the alerts can be computed anew from the topics alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from urteil.harness.clients.applications.declaration import Context
from urteil.harness.clients.applications.flink_application import sink, source
from urteil.harness.clients.applications.result_topics import read_topic
from urteil.harness.evidence.outputs import Output

DUE_MS = 1_000
"""An event has an alert when events of every partition are newer than it by this time."""

MILLISECOND = "MOD(EXTRACT(MILLISECOND FROM CAST({table}.ts AS TIMESTAMP(3))), 1000)"
COLUMNS = """key STRING, `value` BYTES, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  part INT METADATA FROM 'partition' VIRTUAL, off BIGINT METADATA FROM 'offset' VIRTUAL,
  WATERMARK FOR ts AS ts"""

VERSIONED = """
CREATE VIEW thresholds AS SELECT key, ts, off FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY key ORDER BY ts {order}) AS age FROM changes)
WHERE age = 1;
"""

JOINED = """
INSERT INTO {alerts} SELECT e.key,
  CAST(e.part AS STRING) || '-' || CAST(e.off AS STRING) || ' ' || CAST({value} AS STRING)
    || ' above ' || CAST({limit} AS STRING)
FROM events AS e JOIN thresholds FOR SYSTEM_TIME AS OF e.ts AS h ON e.key = h.key
WHERE {value} > {limit};
"""

EXPECTED = f"""
SELECT '{{alerts}}' AS sink, CONCAT(v.partition, '-', v.off) AS key,
  CONCAT(v.amount, ' above ', v.threshold) AS value, 'each' AS mode,
  CASE WHEN v.timestamp_ms + {DUE_MS} < v.read_ms THEN 1 ELSE 0 END AS due
FROM (
  SELECT e.partition, e.off, e.timestamp_ms, {{value}} AS amount, {{limit}} AS threshold, z.read_ms,
    ROW_NUMBER() OVER (PARTITION BY e.partition, e.off
      ORDER BY h.timestamp_ms DESC, h.off DESC) AS age
  FROM inputs e
  JOIN inputs h ON h.key = e.key AND h.timestamp_ms <= e.timestamp_ms
  CROSS JOIN (SELECT MIN(m.last_ms) AS read_ms FROM (
    SELECT MAX(i.timestamp_ms) AS last_ms FROM inputs i GROUP BY i.topic, i.partition) m) z
  WHERE e.topic = '{{events}}' AND h.topic = '{{thresholds}}') v
WHERE v.age = 1 AND v.amount > v.threshold
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """Topics of events and thresholds, and the application's topic of alerts.

    `value` and `limit` compute both from `{ms}`, the milliseconds of an event's time.
    """

    events: str
    thresholds: str
    alerts: str
    value: str = "{ms}"
    limit: str = "{ms}"

    def tables(self, context: Context, *, is_first: bool) -> str:
        """The tables `events`, `thresholds` and that of the alerts. With `is_first`, the seeded
        bug, the first threshold of a key is valid for good."""
        return (
            source(context, "events", self.events, COLUMNS)
            + source(context, "changes", self.thresholds, COLUMNS)
            + VERSIONED.format(order="ASC" if is_first else "DESC")
            + sink(context, self.alerts, context.topic(self.alerts), "STRING")
        )

    @property
    def join(self) -> str:
        """The statement that writes the alerts."""
        value, limit = (
            text.format(ms=MILLISECOND.format(table=table))
            for table, text in (("e", self.value), ("h", self.limit))
        )
        return JOINED.format(alerts=self.alerts, value=value, limit=limit)

    @property
    def expected_rows(self) -> str:
        """The query of the alerts over `inputs`. The key of an alert is the place of its event."""
        value, limit = (
            text.format(ms=f"{table}.timestamp_ms % 1000")
            for table, text in (("e", self.value), ("h", self.limit))
        )
        return EXPECTED.format(
            alerts=self.alerts,
            events=self.events,
            thresholds=self.thresholds,
            value=value,
            limit=limit,
        )

    def read(self, context: Context) -> Iterator[Output]:
        """The written alerts, by the place of their event."""
        for alert in read_topic(context, context.topic(self.alerts), self.alerts):
            place, _, values = (alert.value or "").partition(" ")
            yield msgspec.structs.replace(alert, key=place, value=values)
