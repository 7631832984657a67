"""What scenarios can be played on brokers that lack capabilities."""

from __future__ import annotations

import re

import msgspec
import pytest

from urteil.chaos.capabilities import (
    CAPABILITIES,
    CONSUMER_PROTOCOL,
    IDEMPOTENCE,
    REASSIGNMENT,
    RECORD_BATCHES,
    SHARE_GROUPS,
    STATIC_MEMBERS,
    TOPIC_IDS,
    TRANSACTION_LISTS,
    TRANSACTIONS,
    ZSTD,
    Capability,
)
from urteil.harness.run.playable import NotPlayable, fit_to_brokers, fit_to_releases
from urteil.harness.scenario import (
    DYNAMIC,
    ClusterSpec,
    FaultSpec,
    Scenario,
    TopicSpec,
    WorkloadSpec,
)
from urteil.harness.scenarios import SCENARIOS

PLAIN = Scenario(name="plain", guarantees=("lost_write", "duplicate"))


def test_every_scenario_is_played_unchanged_where_nothing_is_lacking() -> None:
    for scenario in SCENARIOS.values():
        assert fit_to_brokers(scenario, []) == scenario


def test_producers_omit_unsupported_features() -> None:
    load = fit_to_brokers(PLAIN, [IDEMPOTENCE.name, RECORD_BATCHES.name]).workload
    assert not load.idempotent
    assert load.options == {"headers": "false"}
    assert fit_to_brokers(PLAIN, [TOPIC_IDS.name]) == PLAIN


def test_dispensable_setting_of_a_topic_is_left_out() -> None:
    topic = TopicSpec(config={"max.compaction.lag.ms": "1", "segment.ms": "1"})
    load = WorkloadSpec(topics=(topic,))
    compacted = msgspec.structs.replace(PLAIN, workload=load, target="kafka:2.2.0")
    assert fit_to_releases(compacted).workload.topics[0].config == {"segment.ms": "1"}
    newer = msgspec.structs.replace(compacted, target="kafka:2.3.0")
    assert fit_to_releases(newer) == newer


def test_release_without_the_settings_of_share_groups_is_rejected() -> None:
    sharing = msgspec.structs.replace(SCENARIOS["share-leader-crash"], target="kafka-kraft:3.9.1")
    with pytest.raises(NotPlayable, match=r"group\.share\..* Apache Kafka 3\.9\.1 does not have"):
        fit_to_releases(sharing)
    newer = msgspec.structs.replace(sharing, target="kafka:4.2.2")
    assert fit_to_releases(newer) == newer


def test_demo_is_played_on_the_oldest_release() -> None:
    demo = msgspec.structs.replace(SCENARIOS["demo"], target="kafka:0.10.2.2")
    fit_to_releases(demo)
    assert fit_to_brokers(demo, list(CAPABILITIES)).faults == demo.faults


@pytest.mark.parametrize(
    ("scenario", "lack", "client"),
    [
        ("transactional-paused", TRANSACTIONS, "late"),
        ("static-members", STATIC_MEMBERS, "group"),
        ("compaction", RECORD_BATCHES, "producer"),
        ("share-leader-crash", SHARE_GROUPS, "share_consumer"),
    ],
)
def test_scenario_with_missing_dependency_is_rejected(
    scenario: str, lack: Capability, client: str
) -> None:
    with pytest.raises(NotPlayable, match=f"the client {client} cannot run: .*{lack.name}"):
        fit_to_brokers(SCENARIOS[scenario], [lack.name])


def test_consumer_protocol_is_refused_on_brokers_without_it() -> None:
    load = WorkloadSpec(kind="group", options={"group_protocol": "consumer"})
    scenario = msgspec.structs.replace(PLAIN, workload=load)
    needs = r"the client group cannot run: .*the consumer protocol \(ConsumerGroupHeartbeat 1"
    with pytest.raises(NotPlayable, match=needs):
        fit_to_brokers(scenario, [CONSUMER_PROTOCOL.name])


def test_brokers_have_the_sessions_of_the_consumer_protocol() -> None:
    options = {"group_protocol": "consumer", "session_timeout_ms": "9000"}
    load = WorkloadSpec(kind="group", options=options)
    scenario = msgspec.structs.replace(PLAIN, workload=load, target="kafka:4.0.2")
    assert fit_to_releases(scenario).cluster.config == {
        "group.consumer.session.timeout.ms": "9000",
        "group.consumer.min.session.timeout.ms": "9000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "1000",
    }


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("kafka", "Apache Kafka 3.9.1 lacks the consumer protocol"),
        ("kafka-kraft:3.9.0", "Apache Kafka 3.9.0 lacks the consumer protocol"),
        ("urteil", "urteil lacks the consumer protocol"),
        ("kafka:3.6.0", "which Apache Kafka 3.6.0 does not have"),
    ],
)
def test_consumer_protocol_is_rejected_before_an_older_release_starts(
    target: str, reason: str
) -> None:
    scenario = SCENARIOS["consumer-protocol-storm"]
    with pytest.raises(NotPlayable, match=re.escape(reason)):
        fit_to_releases(msgspec.structs.replace(scenario, target=target))
    fit_to_releases(scenario)


def test_scenario_without_a_guarantee_that_can_be_judged_is_refused() -> None:
    alone = Scenario(name="alone", guarantees=("static_member_rebalanced",))
    with pytest.raises(NotPlayable, match="static_member_rebalanced cannot be judged"):
        fit_to_brokers(alone, [STATIC_MEMBERS.name])


@pytest.mark.parametrize(
    "changed",
    [
        {"cluster": ClusterSpec(racks=True)},
        {"cluster": ClusterSpec(users=True)},
        {
            "workload": WorkloadSpec(
                topics=(TopicSpec(config={"message.timestamp.after.max.ms": "1"}),)
            )
        },
    ],
)
def test_setting_that_a_release_does_not_know_is_refused(changed: dict[str, object]) -> None:
    scenario = msgspec.structs.replace(PLAIN, **changed)
    assert fit_to_releases(msgspec.structs.replace(scenario, target="kafka"))
    fit_to_releases(msgspec.structs.replace(scenario, target="urteil"))
    with pytest.raises(NotPlayable, match=r"which Apache Kafka 2\.2\.0 does not have"):
        fit_to_releases(msgspec.structs.replace(scenario, target="kafka:2.2.0"))
    with pytest.raises(NotPlayable, match=r"2\.2\.0"):
        fit_to_releases(msgspec.structs.replace(scenario, target="mix:urteil,kafka:2.2.0"))


def test_upgrade_needs_a_release_before() -> None:
    upgrade = SCENARIOS["upgrade"]
    fit_to_releases(msgspec.structs.replace(upgrade, target="kafka:2.8.2"))
    with pytest.raises(NotPlayable, match=r"no release before 0\.10\.2\.2"):
        fit_to_releases(msgspec.structs.replace(upgrade, target="kafka:0.10.2.2"))


def test_upgrade_without_zookeeper_needs_a_release_from_4_on_and_a_static_quorum() -> None:
    upgrade = SCENARIOS["quorum-upgrade"]
    fit_to_releases(upgrade)
    with pytest.raises(NotPlayable, match=r"to 4\.0 and later releases, not to 3\.9\.1"):
        fit_to_releases(msgspec.structs.replace(upgrade, target="kafka-kraft"))
    dynamic = msgspec.structs.replace(upgrade.cluster, quorum=DYNAMIC)
    with pytest.raises(NotPlayable, match="leave --quorum out"):
        fit_to_releases(msgspec.structs.replace(upgrade, cluster=dynamic))


def test_fault_and_event_that_need_what_is_lacking_are_refused() -> None:
    cancelled = FaultSpec(fault="reassign", target="topic", at_s=1, options={"cancel": True})
    moved = FaultSpec(fault="reassign", target="topic", at_s=1)
    anchored = FaultSpec(fault="crash", target="leader", at_s=1, after_event="decision")
    lacks = [REASSIGNMENT.name, TRANSACTION_LISTS.name]
    assert fit_to_brokers(msgspec.structs.replace(PLAIN, faults=(moved,)), lacks)
    with pytest.raises(NotPlayable, match=r"the fault reassign cannot act: .*reassignment"):
        fit_to_brokers(msgspec.structs.replace(PLAIN, faults=(cancelled,)), lacks)
    with pytest.raises(NotPlayable, match=r"the event decision cannot be seen: .*lists"):
        fit_to_brokers(msgspec.structs.replace(PLAIN, faults=(anchored,)), lacks)


def test_zstd_is_refused_before_it_was_known() -> None:
    load = WorkloadSpec(options={"compression_type": "zstd"})
    with pytest.raises(NotPlayable, match="zstd"):
        fit_to_brokers(msgspec.structs.replace(PLAIN, workload=load), [ZSTD.name])
