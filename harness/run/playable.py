"""The parts of a scenario that the brokers of a cluster support.

Before the start, the releases of the target decide which settings exist, and which clients are
too new. After the start, the brokers' API versions decide which faults and clients can act
(chaos/capabilities.py). A scenario
that cannot be played is rejected with the reason. Plain producers omit idempotence and headers
where brokers do not support them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from urteil.chaos import anchor_events
from urteil.chaos.capabilities import (
    IDEMPOTENCE,
    RECORD_BATCHES,
    ZSTD,
    describe_missing,
    name_all,
)
from urteil.chaos.faults import FAULTS
from urteil.chaos.faults.base.fault import DOCKER, EXTERNAL, KRAFT, PROCESS, target_kind
from urteil.harness.bounds import Dimension
from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.options import (
    MembershipOptions,
    SendOptions,
    has_consumer_protocol,
)
from urteil.harness.dependencies.kafka import VERSION
from urteil.harness.dependencies.kafka_releases import DISPENSABLE, parse_version
from urteil.harness.scenario import DYNAMIC, Scenario, clusters
from urteil.harness.targets import Mix, UrteilTarget, parse_target
from urteil.harness.targets.external import PREFIX
from urteil.harness.targets.target import QUORUM_SERVERS, Target, required_settings
from urteil.harness.verify.guarantees import GUARANTEES


class NotPlayable(ValueError):
    """The target cannot play the scenario. The text is the reason."""


def missing_in_runtime(scenario: Scenario, target: str, runtime: str) -> str:
    """The reason for which a runtime cannot play the scenario on a target; empty if it can. Faults
    give reasons of their own."""
    kind = target_kind(target)
    features = (
        (
            "a dynamic quorum",
            kind == KRAFT and scenario.cluster.quorum == DYNAMIC,
            (PROCESS, DOCKER),
        ),
        ("a listener for users", scenario.cluster.users, (PROCESS,)),
        ("a second cluster", scenario.second is not None, (PROCESS,)),
    )
    for feature, is_needed, runtimes in features:
        if is_needed and runtime not in runtimes and kind != EXTERNAL:
            names = " or ".join(runtimes)
            return f"{scenario.name}: {feature} is there only with --runtime {names}"
    return ""


def fit_to_releases(scenario: Scenario) -> Scenario:
    """The scenario without dispensable settings of topics that a release of the target lacks, and
    with the settings of brokers that its groups need. Raises NotPlayable for any other setting that
    the release lacks. External brokers have their own settings."""
    if scenario.target.startswith(PREFIX):
        return scenario
    scenario = _with_sessions(scenario)
    target = parse_target(scenario.target)
    kinds = target.kinds if isinstance(target, Mix) else (target,)
    dropped = {
        setting for setting in DISPENSABLE if not all(kind.knows_setting(setting) for kind in kinds)
    }
    load = scenario.workload
    topics = tuple(
        msgspec.structs.replace(
            topic, config={name: v for name, v in topic.config.items() if name not in dropped}
        )
        for topic in load.topics
    )
    fitted = msgspec.structs.replace(
        scenario, workload=msgspec.structs.replace(load, topics=topics)
    )
    for kind in kinds:
        _check_settings(fitted, kind)
        _check_clients(fitted, kind)
    return fitted


def _with_sessions(scenario: Scenario) -> Scenario:
    """The scenario whose brokers set the sessions of a `consumer` group, as its members would those
    of a classic one."""
    load, cluster = scenario.workload, scenario.cluster
    if not has_consumer_protocol(load):
        return scenario
    options = MembershipOptions.of(load)
    sessions = {
        f"group.consumer.{bound}{name}": str(value)
        for name, value in (
            ("session.timeout.ms", options.session_timeout_ms),
            ("heartbeat.interval.ms", options.heartbeat_interval_ms),
        )
        for bound in ("", "min.")
    }
    config = sessions | cluster.config
    return msgspec.structs.replace(
        scenario, cluster=msgspec.structs.replace(cluster, config=config)
    )


def _check_settings(scenario: Scenario, kind: Target) -> None:
    is_dynamic = not kind.has_zookeeper and scenario.cluster.quorum == DYNAMIC
    if is_dynamic and not kind.knows_setting(QUORUM_SERVERS):
        raise NotPlayable(
            f"{scenario.name} needs a dynamic quorum, and the voters of "
            f"{_name(kind)} are static: they can change from 3.9 on (KIP-853)"
        )
    unknown = sorted(
        {setting for setting in _settings(scenario) if not kind.knows_setting(setting)}
    )
    if unknown:
        raise NotPlayable(f"{scenario.name} needs the setting {', '.join(unknown)}, which "
                          f"{_name(kind)} does not have")  # fmt: skip
    if not kind.has_zookeeper and any(cluster.users for cluster in clusters(scenario).values()):
        raise NotPlayable(f"{scenario.name} needs users, whose ACLs and passwords the lab writes "
                          "into ZooKeeper: --target kafka has it")  # fmt: skip
    for name, value in _values(scenario):
        lowest = kind.lowest_value(name)
        if lowest is not None and int(value) < lowest:
            raise NotPlayable(f"{scenario.name} needs {name}={value}, and {_name(kind)} accepts "
                              f"{lowest} at least")  # fmt: skip
    if any(cluster.older for cluster in clusters(scenario).values()):
        try:
            kind.previous_release()
        except ValueError as reason:
            raise NotPlayable(f"{scenario.name}: {reason}") from None
        if is_dynamic:
            raise NotPlayable(f"{scenario.name} begins with an older release, whose voters are "
                              "static: leave --quorum out")  # fmt: skip


def _check_clients(scenario: Scenario, kind: Target) -> None:
    """Our broker has the protocol of the release `VERSION`."""
    release = parse_version(VERSION if isinstance(kind, UrteilTarget) else kind.version)
    for client in client_kinds().values():
        needs = client.required_capabilities(scenario.workload)
        missing = [need for need in needs if parse_version(need.since) > release]
        if missing and client.client_names(scenario):
            raise NotPlayable(f"{scenario.name}: the client {client.name} cannot run: "
                              f"{_name(kind)} lacks {name_all(missing)}")  # fmt: skip


def _values(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The settings of brokers and topics with their values."""
    for cluster in clusters(scenario).values():
        yield from cluster.config.items()
    for topic in scenario.workload.topics:
        yield from topic.config.items()
    for dimension in _drawn_settings(scenario):
        yield from ((dimension.name, str(value)) for value in dimension.values if value is not None)


def _drawn_settings(scenario: Scenario) -> list[Dimension]:
    """The settings of brokers and topics that a seed may draw."""
    dimensions = scenario.bounds.dimensions if scenario.bounds else ()
    return [dimension for dimension in dimensions if dimension.of in ("brokers", "topic settings")]


def _settings(scenario: Scenario) -> Iterator[str]:
    """The settings that the scenario depends on."""
    for cluster in clusters(scenario).values():
        yield from required_settings(cluster)
    for topic in scenario.workload.topics:
        yield from topic.config
    for dimension in _drawn_settings(scenario):
        yield dimension.name


def _name(kind: Target) -> str:
    return kind.name if isinstance(kind, UrteilTarget) else f"Apache Kafka {kind.version}"


def fit_to_brokers(scenario: Scenario, lacks: Collection[str]) -> Scenario:
    """The scenario as brokers that lack these capabilities can play it.

    Raises NotPlayable if they cannot, and if none of its own guarantees could be judged.
    """
    for fault in scenario.faults:
        needs = FAULTS[fault.fault].required_capabilities(fault.options)
        if lack := describe_missing(needs, lacks):
            raise NotPlayable(f"{scenario.name}: the fault {fault.fault} cannot act: {lack}")
        event = fault.after_event or ""
        if lack := describe_missing(anchor_events.NEEDS.get(event, ()), lacks):
            raise NotPlayable(f"{scenario.name}: the event {event} cannot be seen: {lack}")
    for kind in client_kinds().values():
        lack = describe_missing(kind.required_capabilities(scenario.workload), lacks)
        if lack and kind.client_names(scenario):
            raise NotPlayable(f"{scenario.name}: the client {kind.name} cannot run: {lack}")
    judged = [guarantee for guarantee in scenario.guarantees if not _lack(guarantee, lacks)]
    if scenario.guarantees and not judged:
        first = scenario.guarantees[0]
        raise NotPlayable(f"{scenario.name}: {first} cannot be judged: {_lack(first, lacks)}")
    load = scenario.workload
    if IDEMPOTENCE.name in lacks:
        load = msgspec.structs.replace(load, idempotent=False)
    codec = SendOptions.of(load).compression_type
    if lack := describe_missing((ZSTD,) if codec == "zstd" else (), lacks):
        raise NotPlayable(f"{scenario.name}: records cannot be compressed by zstd: {lack}")
    if RECORD_BATCHES.name in lacks:
        load = msgspec.structs.replace(load, options=load.options | {"headers": "false"})
    return msgspec.structs.replace(scenario, workload=load)


def _lack(guarantee: str, lacks: Collection[str]) -> str:
    """The reason for which a guarantee cannot be judged; empty if it can."""
    declared = GUARANTEES.get(guarantee)
    return describe_missing(declared.requires, lacks) if declared else ""
