"""The guarantees of which a scenario's settings and faults may permit violations."""

from __future__ import annotations

from urteil.harness.permits import permits_of
from urteil.harness.scenario import Scenario
from urteil.harness.verify.guarantees import GUARANTEES


def permitted_guarantees(scenario: Scenario) -> frozenset[str]:
    """The guarantees with an excuse that rests on a permit of the scenario."""
    permits = permits_of(scenario)
    return frozenset(
        guarantee.name
        for guarantee in GUARANTEES.values()
        if any(permits.intersection(excuse.permits) for excuse in guarantee.excuses)
    )
