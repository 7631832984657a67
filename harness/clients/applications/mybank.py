"""The case study MyBank: an alert for every transaction above its customer's threshold.

Transactions and thresholds are events with the customer as key: see `thresholds.py`.
"""

from __future__ import annotations

from urteil.harness.clients.applications.declaration import Application, Context
from urteil.harness.clients.applications.flink_application import (
    FORGETFUL,
    fetch_parts,
    flink_process,
    remaining_with_transactions,
)
from urteil.harness.clients.applications.thresholds import Alerts
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.clients.promises import EXACTLY_ONCE
from urteil.harness.scenario import TopicSpec

TRANSACTIONS, THRESHOLDS, ALERTS = "bank-transactions", "user-thresholds", "alerts"
FIRST = "first-threshold"
"""The variant that compares every transaction with the customer's first threshold."""

ALERTED = Alerts(events=TRANSACTIONS, thresholds=THRESHOLDS, alerts=ALERTS)


def script(context: Context) -> str:
    """The tables, and the join."""
    is_first = ApplicationOptions.of(context.load).variant == FIRST
    return ALERTED.tables(context, is_first=is_first) + ALERTED.join


APPLICATION = Application(
    name="mybank",
    about="MyBank: Flink SQL alerts for every transaction above the threshold valid at its time",
    promise=EXACTLY_ONCE,
    processes=(flink_process(script),),
    topics=(TopicSpec(name=ALERTS, config={"min.insync.replicas": "2"}),),
    prepare=fetch_parts,
    remaining=lambda context: remaining_with_transactions(context, context.topic(ALERTS)),
    outputs=ALERTED.read,
    expected=lambda _scenario: ALERTED.expected_rows,
    variants=(FIRST, FORGETFUL),
)
