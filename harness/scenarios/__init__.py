"""The catalogue of scenarios. docs/reference/scenarios.md describes each of them."""

from urteil.harness.scenario import Scenario
from urteil.harness.scenarios import (
    administration,
    applications,
    case_studies,
    chaos,
    clocks,
    compaction,
    connect,
    containers,
    crashes,
    delivery,
    demo,
    disks,
    elections,
    fencing,
    groups,
    loads,
    lost_messages,
    mirrors,
    network,
    partitions,
    pipelines,
    protocol,
    protocol_matrix,
    quotas,
    retention,
    security,
    streams,
    transactions,
    zookeeper,
)

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for family in (
        demo,
        crashes,
        partitions,
        network,
        elections,
        delivery,
        groups,
        pipelines,
        applications,
        case_studies,
        connect,
        streams,
        transactions,
        loads,
        lost_messages,
        mirrors,
        protocol,
        protocol_matrix,
        administration,
        containers,
        chaos,
        disks,
        zookeeper,
        clocks,
        fencing,
        compaction,
        retention,
        security,
        quotas,
    )
    for scenario in family.FAMILY
}
"""Every scenario by name; the first is the demo."""

SUITES: dict[str, tuple[str, ...]] = {
    suite: tuple(scenario.name for scenario in SCENARIOS.values() if suite in scenario.suites)
    for suite in sorted({name for scenario in SCENARIOS.values() for name in scenario.suites})
}
"""The names of each suite's scenarios."""
