"""The case study TruckGPS: the last position of each truck, and a notification of each speeding.

Trucks send positions with themselves as key. The speed is part of a position, and the limit of a
truck changes with its road: limits are events, too (`thresholds.py`). One job of Flink SQL has two
sinks: a compacted topic for the dashboard, and the notifications.
"""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.clients.applications.declaration import Application, Context
from urteil.harness.clients.applications.flink_application import (
    fetch_parts,
    flink_process,
    remaining_with_transactions,
    sink,
)
from urteil.harness.clients.applications.result_topics import read_topic
from urteil.harness.clients.applications.thresholds import Alerts
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.clients.promises import EXACTLY_ONCE
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import TopicSpec

POSITIONS, LIMITS = "trucks-gps", "speed-limits"
DASHBOARD, NOTIFICATIONS = "dashboard", "notifications"
SAFE = {"min.insync.replicas": "2"}
FIRST = "first-limit"
"""The variant that compares every speed with the truck's first limit."""

SPEEDING = Alerts(
    events=POSITIONS,
    thresholds=LIMITS,
    alerts=NOTIFICATIONS,
    value="{ms} % 130",
    limit="50 + {ms} % 60",
)
SHOWN = f"""
INSERT INTO {DASHBOARD} SELECT e.key, CAST(e.part AS STRING) || '-' || CAST(e.off AS STRING)
FROM events AS e;
"""

EXPECTED = f"""
SELECT '{DASHBOARD}' AS sink, p.key, CONCAT(p.partition, '-', p.off) AS value, 'latest' AS mode,
  1 AS due
FROM (SELECT i.key, i.partition, i.off,
    ROW_NUMBER() OVER (PARTITION BY i.key ORDER BY i.off DESC) AS age
  FROM inputs i WHERE i.topic = '{POSITIONS}') p
WHERE p.age = 1
UNION ALL
{SPEEDING.expected_rows}
"""


def script(context: Context) -> str:
    """The tables, and both statements as one job."""
    is_first = ApplicationOptions.of(context.load).variant == FIRST
    return (
        SPEEDING.tables(context, is_first=is_first)
        + sink(context, DASHBOARD, context.topic(DASHBOARD), "STRING")
        + f"EXECUTE STATEMENT SET BEGIN {SHOWN} {SPEEDING.join} END;"
    )


def read_outputs(context: Context) -> Iterator[Output]:
    """The positions of the dashboard, and the notifications."""
    yield from read_topic(context, context.topic(DASHBOARD), DASHBOARD)
    yield from SPEEDING.read(context)


APPLICATION = Application(
    name="truckgps",
    about="TruckGPS: Flink SQL shows the last position of each truck and notifies of each speeding",
    promise=EXACTLY_ONCE,
    processes=(flink_process(script),),
    topics=(
        TopicSpec(name=DASHBOARD, config=SAFE | {"cleanup.policy": "compact"}),
        TopicSpec(name=NOTIFICATIONS, config=SAFE),
    ),
    prepare=fetch_parts,
    remaining=lambda context: remaining_with_transactions(
        context, context.topic(DASHBOARD), context.topic(NOTIFICATIONS)
    ),
    outputs=read_outputs,
    expected=lambda _scenario: EXPECTED,
    variants=(FIRST,),
)
