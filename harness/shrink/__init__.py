"""From a run that failed to the smallest schedule that still shows the same anomaly."""

from urteil.harness.shrink.anomaly import Anomaly, NoAnomaly, Outcome, anomaly_of, outcome_of
from urteil.harness.shrink.shrinker import Report, Step, shrink
from urteil.harness.shrink.tries import BudgetSpent, Rule, Tally, Tries

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
