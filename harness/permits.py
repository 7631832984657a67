"""What the settings and the faults of a scenario permit, derived from them and never declared.

Each excuse of a guarantee names the permits that it rests on (`Excuse.permits`). Whether a finding
is excused is decided by its own records: their acks, their partition's settings, the faults at
their time. The permits of a scenario say in advance which excuses can apply at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from urteil.chaos.effects import Effect
from urteil.chaos.faults import FAULTS
from urteil.chaos.faults.base.fault import Fault
from urteil.chaos.random_schedule import sample_arguments
from urteil.chaos.schedule import check_fault
from urteil.chaos.weighted_faults import WeightedFault
from urteil.harness.clients.kind import Writes, client_kinds
from urteil.harness.clients.options import GroupOptions, LibraryOptions
from urteil.harness.clients.transactions.delayed_requests import DelayedRequestOptions
from urteil.harness.permitted_deviations import Permit
from urteil.harness.scenario import Scenario, clusters
from urteil.harness.topic_settings import cleanup_policy, min_isr, setting

FOREVER_MS = 3_600_000
"""Records that stay for an hour outlive every run."""


def permits_of(scenario: Scenario) -> frozenset[Permit]:
    """The permits of a scenario, whether its schedule is drawn already or not."""
    return frozenset(permit for permit, holds in _CONDITIONS.items() if holds(scenario))


def _loses_unreplicated(scenario: Scenario) -> bool:
    replicated = any(topic.replication_factor > 1 for topic in scenario.workload.topics)
    return scenario.workload.acks == 1 and replicated


def _writes_plainly(scenario: Scenario) -> bool:
    """Whether a client writes without idempotence (`ClientKind.complete`)."""
    load = scenario.workload
    by_workload = load.idempotent and load.acks == -1
    old = LibraryOptions.of(load).old_clients
    return any(
        kind.writes is Writes.PLAINLY
        or (kind.writes is Writes.BY_WORKLOAD and (not by_workload or (old and kind.may_be_old)))
        for kind in client_kinds().values()
        if kind.client_names(scenario)
    )


def _elects_uncleanly(scenario: Scenario) -> bool:
    name = "unclean.leader.election.enable"
    everywhere = [cluster.config.get(name) for cluster in clusters(scenario).values()]
    of_topics = [setting(topic, scenario, name) for topic in scenario.workload.topics]
    asked = {Effect.ALLOWS_UNCLEAN_ELECTIONS, Effect.ELECTS_UNCLEANLY}
    return "true" in (*everywhere, *of_topics) or any(f.effects & asked for f in _faults(scenario))


def _loses_disks(scenario: Scenario) -> bool:
    """Whether a fault takes several disks at once, or one of a replica that may be in sync alone:
    where acks=all requires no other one, or where another fault may keep the others away."""
    may_be_alone = _has_overlaps(scenario) or any(
        min_isr(topic, scenario) == 1 for topic in scenario.workload.topics
    )
    takes = {Effect.LOSES_WRITES, Effect.EMPTIES_DISKS}
    return any(
        fault.effects & takes and (may_be_alone or _selects_several(fault.arguments.target))
        for fault in _faults(scenario)
    )


def _has_overlaps(scenario: Scenario) -> bool:
    """Whether two faults may act on brokers at once."""
    if scenario.draw is not None and scenario.draw.at_once > 1:
        return True
    spans = sorted(
        (spec.at_s or 0.0, spec.duration_s)
        for spec in scenario.faults
        if not FAULTS[spec.fault].acts_on_quorum(spec.target)
        and not FAULTS[spec.fault].acts_on_zookeeper(spec.target, spec.options)
    )
    return any(
        at_s + lasts_s > next_s for (at_s, lasts_s), (next_s, _) in itertools.pairwise(spans)
    )


def _selects_several(target: str) -> bool:
    return target in ("all", "isr", "majority", "followers") or "," in target


def _commits_first(scenario: Scenario) -> bool:
    has_members = bool(client_kinds()["group"].client_names(scenario))
    return has_members and GroupOptions.of(scenario.workload).commit == "before"


def _delays_ends(scenario: Scenario) -> bool:
    """Whether an EndTxn may arrive late: a client sends late ones, or a fault delays messages."""
    delays = {Effect.SLOWS_LINKS, Effect.LOSES_MESSAGES, Effect.REPEATS_REQUESTS}
    return any(
        kind.is_transactional and kind.client_names(scenario) for kind in client_kinds().values()
    ) and (
        DelayedRequestOptions.of(scenario.workload).delayed_ends > 0
        or any(fault.effects & delays for fault in _faults(scenario))
    )


def _deletes(scenario: Scenario) -> bool:
    by_hand = {Effect.DELETES_RECORDS, Effect.SHORTENS_RETENTION}
    brokers = scenario.cluster.config
    kept = [
        (
            topic.config.get("retention.ms", brokers.get("log.retention.ms", FOREVER_MS)),
            topic.config.get("retention.bytes", brokers.get("log.retention.bytes", -1)),
        )
        for topic in scenario.workload.topics
        if "delete" in cleanup_policy(topic, scenario)
    ]
    return any(0 <= int(ms) < FOREVER_MS or int(size) >= 0 for ms, size in kept) or any(
        fault.effects & by_hand for fault in _faults(scenario)
    )


def _compacts(scenario: Scenario) -> bool:
    return any("compact" in cleanup_policy(topic, scenario) for topic in scenario.workload.topics)


def _may_stand_still(scenario: Scenario) -> bool:
    """Whether the loss of one broker may end the writes to a topic: without another replica, or
    with fewer than acks=all requires."""
    needs_isr = scenario.workload.acks == -1
    return any(
        topic.replication_factor - 1 < (min_isr(topic, scenario) if needs_isr else 1)
        for topic in scenario.workload.topics
    )


_CONDITIONS: Mapping[Permit, Callable[[Scenario], bool]] = {
    Permit.ACKS_ZERO: lambda scenario: scenario.workload.acks == 0,
    Permit.ACKS_ONE: _loses_unreplicated,
    Permit.RETRIES: _writes_plainly,
    Permit.IN_FLIGHT: lambda scenario: (
        scenario.workload.in_flight > 1 and _writes_plainly(scenario)
    ),
    Permit.UNCLEAN_ELECTION: _elects_uncleanly,
    Permit.LOST_DISKS: _loses_disks,
    Permit.COMMITS_FIRST: _commits_first,
    Permit.LATE_ENDS: _delays_ends,
    Permit.DELETION: _deletes,
    Permit.COMPACTION: _compacts,
    Permit.STANDSTILL: _may_stand_still,
}
"""When a scenario has each permit."""


def _faults(scenario: Scenario) -> Iterator[Fault]:
    """The faults that a scenario names, and those that it may draw."""
    topic = scenario.workload.topics[0].name
    named = [
        WeightedFault(fault=spec.fault, targets=(spec.target,), options=dict(spec.options))
        for spec in scenario.faults
    ]
    for choice in (*named, *(scenario.draw.choices if scenario.draw else ())):
        check_fault(choice.fault)
        for arguments in sample_arguments(choice, topic):
            yield FAULTS[choice.fault](arguments)
