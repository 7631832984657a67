"""The permits of a scenario follow from its settings and faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault
from urteil.harness.permits import permits_of
from urteil.harness.permitted_deviations import Permit
from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, TopicSpec
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.permitted import permitted_guarantees

SAFE = SCENARIOS["calm"]
Change = Callable[[Scenario], Scenario]


def load(**changes: object) -> Change:
    return lambda scenario: replace(scenario, workload=replace(scenario.workload, **changes))


def topics(*specs: TopicSpec) -> Change:
    return load(topics=specs)


def topic(replicas: int = 3, **config: str) -> TopicSpec:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return TopicSpec(replication_factor=replicas, config=settings)


def brokers(**config: str) -> Change:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return lambda scenario: replace(scenario, cluster=ClusterSpec(config=settings))


def faults(*names: str, target: str = "leader", at_s: float = 5.0) -> Change:
    specs = tuple(FaultSpec(fault=name, target=target, at_s=at_s) for name in names)
    return lambda scenario: replace(scenario, faults=specs)


def both(first: Change, second: Change) -> Change:
    return lambda scenario: second(first(scenario))


PLAIN = {Permit.RETRIES, Permit.IN_FLIGHT}


@pytest.mark.parametrize(
    ("change", "permits"),
    [
        (load(), set()),
        (load(acks=0), {Permit.ACKS_ZERO, *PLAIN}),
        (load(acks=1), {Permit.ACKS_ONE, *PLAIN}),
        (both(topics(topic(1)), load(acks=1)), {Permit.STANDSTILL, *PLAIN}),
        (load(idempotent=False), PLAIN),
        (load(idempotent=False, in_flight=1), {Permit.RETRIES}),
        (load(options={"old_clients": "1"}), PLAIN),
        (load(options={"corrupt_batches": "5"}), PLAIN),
        (topics(topic(unclean_leader_election_enable="true")), {Permit.UNCLEAN_ELECTION}),
        (brokers(unclean_leader_election_enable="true"), {Permit.UNCLEAN_ELECTION}),
        (faults("elect_unclean", target="topic"), {Permit.UNCLEAN_ELECTION}),
        (faults("allow_unclean", target="topic"), {Permit.UNCLEAN_ELECTION}),
        (faults("power_cut"), set()),
        (faults("power_cut", target="all"), {Permit.LOST_DISKS}),
        (faults("power_cut", "partition", target="leader"), {Permit.LOST_DISKS}),
        (both(topics(topic(min_insync_replicas="1")), faults("power_cut")), {Permit.LOST_DISKS}),
        (both(topics(topic(min_insync_replicas="1")), faults("crash", target="all")), set()),
        (load(kind="group", options={"commit": "before"}), {Permit.COMMITS_FIRST}),
        (load(options={"commit": "before"}), set()),
        (load(kind="transactions"), set()),
        (load(kind="transactions", options={"delayed_ends": "1"}), {Permit.LATE_ENDS}),
        (topics(topic(retention_ms="4000")), {Permit.DELETION}),
        (topics(topic(retention_ms="600000000")), set()),
        (topics(topic(retention_bytes="65536")), {Permit.DELETION}),
        (brokers(log_retention_bytes="65536"), {Permit.DELETION}),
        (faults("delete_records", target="topic"), {Permit.DELETION}),
        (topics(topic(cleanup_policy="compact", retention_ms="4000")), {Permit.COMPACTION}),
        (
            topics(topic(cleanup_policy="compact,delete", retention_ms="4000")),
            {Permit.COMPACTION, Permit.DELETION},
        ),
        (topics(topic(2, min_insync_replicas="2")), {Permit.STANDSTILL}),
        (topics(topic(2, min_insync_replicas="1")), set()),
        (topics(topic(1, min_insync_replicas="2")), {Permit.STANDSTILL}),
    ],
)
def test_permits_follow_from_settings_and_faults(change: Change, permits: set[Permit]) -> None:
    assert permits_of(change(SAFE)) == permits


def test_faults_that_may_be_drawn_count() -> None:
    alone = RandomSchedule(choices=(WeightedFault(fault="power_cut", targets=("leader",)),))
    assert permits_of(replace(SAFE, draw=alone)) == set()
    assert permits_of(replace(SAFE, draw=replace(alone, at_once=2))) == {Permit.LOST_DISKS}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
def test_declarations_of_a_scenario_agree_with_its_permits(scenario: Scenario) -> None:
    """An anomaly that it must find is permitted, and one that promises progress permits none to
    stand still. No scenario declares what its settings say."""
    assert set(scenario.must_find) <= permitted_guarantees(scenario)
    assert not (scenario.survives and Permit.STANDSTILL in permits_of(scenario))
    assert not scenario.permits


def test_every_permit_of_an_anomaly_is_named_by_an_excuse() -> None:
    named = {
        permit
        for guarantee in GUARANTEES.values()
        for excuse in guarantee.excuses
        for permit in excuse.permits
    }
    assert named == {*Permit} - {Permit.DELETION, Permit.COMPACTION, Permit.STANDSTILL}
