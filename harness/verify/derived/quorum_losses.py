"""The times in which faults leave a quorum of KRaft without a majority. It then has no active
controller, even where its last leader is alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from urteil.harness.scenario import Scenario, clusters, node_names
from urteil.harness.verify.derived.fault_effects import MAKES_UNAVAILABLE, has_any
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.evidence import Row, links_of, targets_of


def quorum_losses(faults: Sequence[Row], scenario: Scenario) -> list[Interval]:
    """Of all clusters of the scenario. The voters are those at the start."""
    return [
        interval
        for cluster in clusters(scenario)
        for interval in _without_majority(node_names(scenario, cluster).voters, faults)
    ]


def _without_majority(voters: Sequence[str], faults: Sequence[Row]) -> Iterator[Interval]:
    acting = [
        (acting_interval(fault), fault)
        for fault in faults
        if fault["acted"] and has_any(fault, MAKES_UNAVAILABLE)
    ]
    moments = sorted({at_ns for acted, _ in acting for at_ns in (acted.begin_ns, acted.end_ns)})
    for begin_ns, end_ns in pairwise(moments):
        interval = Interval(begin_ns, end_ns)
        if voters and not _has_majority(
            voters, [f for acted, f in acting if acted.meets(interval)]
        ):
            yield interval


def _has_majority(voters: Sequence[str], faults: Iterable[Row]) -> bool:
    """Whether a voter is connected in both directions with so many others that they are more than
    half, while faults act on none of them."""
    disturbed = {target for fault in faults for target in targets_of(fault)}
    cut = {frozenset(link) for fault in faults for link in links_of(fault)}
    left = [voter for voter in voters if voter not in disturbed]
    return any(
        2 * sum(frozenset((voter, other)) not in cut for other in left) > len(voters)
        for voter in left
    )
