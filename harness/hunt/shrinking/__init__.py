"""Shrinking: from a failed run to the smallest schedule that still shows the same anomaly."""

from urteil.harness.hunt.shrinking.anomaly import (
    Anomaly,
    NoAnomaly,
    Outcome,
    anomaly_of,
    outcome_of,
)
from urteil.harness.hunt.shrinking.shrink_steps import Report, Step, shrink
from urteil.harness.hunt.shrinking.tries import BudgetSpent, Rule, Tally, Tries

__all__ = [
    "Anomaly",
    "BudgetSpent",
    "NoAnomaly",
    "Outcome",
    "Report",
    "Rule",
    "Step",
    "Tally",
    "Tries",
    "anomaly_of",
    "outcome_of",
    "shrink",
]
