"""Draws a whole scenario within its bounds: cluster, topics, settings, clients, and the faults that
can act on them. The same seed draws the same scenario.

Each property has a random generator of its own, so that another dimension, or another value of one,
changes no other property. What the settings promise is derived afterwards (harness/permits.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import msgspec

from urteil.chaos.client_selectors import KINDS
from urteil.chaos.effects import Effect
from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault
from urteil.harness.bounds import Bounds, Dimension, Place, Value
from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.libraries import VERIFIABLE
from urteil.harness.clients.libraries.verifiable_tool import UNSUPPORTED_EFFECTS
from urteil.harness.clients.workload_kinds import is_transactional
from urteil.harness.evidence.fault_effects import named_effects
from urteil.harness.permits import permits_of
from urteil.harness.permitted_deviations import Permit
from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.topic_settings import cleanup_policy, setting

TOPICS = "topics"
_replace = msgspec.structs.replace
Properties = Mapping[str, Value]


def draw_scenario(scenario: Scenario) -> Scenario:
    """The scenario of its seed. One without bounds, or drawn already, is returned unchanged."""
    bounds = scenario.bounds
    if bounds is None:
        return scenario
    draw = _Draw(scenario.seed, bounds)
    cluster = _cluster(scenario.cluster, draw)
    load = _workload(scenario.workload, draw)
    topics = _topics(load.topics[0], cluster, draw)
    drawn = _replace(
        scenario, cluster=cluster, workload=_replace(load, topics=tuple(topics)), bounds=None
    )
    if scenario.draw is not None:
        drawn = _replace(drawn, draw=_schedule(drawn, scenario.draw, draw))
    return _replace(
        drawn,
        guarantees=(*scenario.guarantees, *_judged_guarantees(drawn)),
        survives=Permit.STANDSTILL not in permits_of(drawn),
    )


class _Draw:
    """The drawn properties so far. `properties` has the last value of each name."""

    def __init__(self, seed: int, bounds: Bounds) -> None:
        self.bounds = bounds
        self._seed = seed
        self.properties: dict[str, Value] = {}

    def of(self, *places: Place, subject: str = "") -> dict[str, Value]:
        """Draw the properties of these places, for one subject (a topic). Those that stay at their
        defaults are left out."""
        return {
            name: value
            for name, value in self._draw_all(places, subject, self.properties)
            if value is not None
        }

    def _draw_all(
        self, places: tuple[Place, ...], subject: str, known: dict[str, Value]
    ) -> Iterator[tuple[str, Value]]:
        for place in places:
            for dimension in self.bounds.dimensions:
                if dimension.of == place and _applies(dimension, known):
                    random = Random(f"{self._seed}/{place}/{dimension.name}/{subject}")
                    weights = dimension.weights or None
                    (value,) = random.choices(dimension.values, weights)
                    known[dimension.name] = value
                    yield dimension.name, value


def _applies(dimension: Dimension, known: Properties) -> bool:
    return all(known.get(name) in values for name, values in dimension.only_with.items())


def _cluster(base: ClusterSpec, draw: _Draw) -> ClusterSpec:
    drawn = _replace(base, **draw.of("cluster"))
    return _replace(drawn, config=base.config | _texts(draw.of("brokers")))


def _workload(base: WorkloadSpec, draw: _Draw) -> WorkloadSpec:
    fields = draw.of("clients")
    fields.pop(TOPICS, None)
    return _replace(base, **fields, options=base.options | _texts(draw.of("options")))


def _topics(base: TopicSpec, cluster: ClusterSpec, draw: _Draw) -> Iterator[TopicSpec]:
    """The topics, within `most_replicas` in all. The first one, whose partition gives the roles of
    faults their meaning, has a follower; with transactions, it has two partitions, since late
    records belong to one that the next transaction lacks."""
    count = int(draw.properties.get(TOPICS) or 1)
    room = draw.bounds.most_replicas
    of_clients = dict(draw.properties)
    for number in range(1, count + 1):
        draw.properties = dict(of_clients)
        name = base.name if number == 1 else f"{base.name}-{number}"
        fields: dict[str, Any] = draw.of("topic", subject=name)
        replicas = min(fields["replication_factor"], cluster.brokers)
        replicas = max(replicas, 2) if number == 1 else replicas
        left_for_others = (count - number) * cluster.brokers
        most = max(1, (room - left_for_others) // replicas)
        least = 2 if number == 1 and is_transactional(str(of_clients["kind"])) else 1
        partitions = max(least, min(fields["partitions"], most))
        room -= partitions * replicas
        config = _texts(draw.of("topic settings", subject=name))
        if "min.insync.replicas" in config:
            required = min(int(config["min.insync.replicas"]), replicas)
            config["min.insync.replicas"] = str(required)
        yield TopicSpec(
            name=name, partitions=partitions, replication_factor=replicas, config=config
        )
    draw.properties = of_clients


def _texts(properties: Properties) -> dict[str, str]:
    """Settings and options as text, as files and journals have them."""
    return {
        name: str(int(value)) if isinstance(value, bool) else str(value)
        for name, value in properties.items()
    }


def _schedule(scenario: Scenario, base: RandomSchedule, draw: _Draw) -> RandomSchedule:
    """The random schedule with drawn fields, and the faults that can act in the drawn scenario."""
    choices = []
    for choice in base.choices:
        targets = tuple(target for target in choice.targets if _can_select(target, scenario))
        if targets and _can_act(choice, scenario):
            choices.append(_replace(choice, targets=targets))
    return _replace(base, choices=tuple(choices), **draw.of("faults"))


def _can_select(target: str, scenario: Scenario) -> bool:
    """Whether a target always exists: clients of a kind that run, a follower also while one is
    away, a majority of several ZooKeeper servers."""
    kind = target.removesuffix("s")
    if kind in KINDS:
        return bool(client_kinds()[KINDS[kind]].client_names(scenario))
    if re.search(r"follower|successor|straggler", target):
        return scenario.workload.topics[0].replication_factor > 2
    return "zookeeper_" not in target or scenario.cluster.zookeepers > 2


def _can_act(choice: WeightedFault, scenario: Scenario) -> bool:
    """Whether brokers, clients and the first topic have what the fault's effects need."""
    cluster, load, topic = scenario.cluster, scenario.workload, scenario.workload.topics[0]
    one_isr = setting(topic, scenario, "min.insync.replicas") == "1"
    lacking = {
        *({Effect.REMOVES_DISKS, Effect.MOVES_LOGS} if cluster.log_dirs < 2 else ()),
        *({Effect.MOVES_CLOCKS} if not cluster.own_clocks else ()),
        *({Effect.LOSES_MESSAGES} if load.acks == 0 else ()),  # it has no answers to lose
        *({Effect.CHANGES_MIN_ISR} if one_isr else ()),  # to 1: nothing would change
        *({Effect.DELETES_RECORDS} if cleanup_policy(topic, scenario) == "compact" else ()),
        *(UNSUPPORTED_EFFECTS if load.client == VERIFIABLE else ()),
    }
    return not named_effects(choice.fault) & lacking


def _judged_guarantees(scenario: Scenario) -> tuple[str, ...]:
    """Guarantees that the drawn scenario always has occasion to judge."""
    load = scenario.workload
    in_transactions = is_transactional(load.kind)
    written = load.topics[:1] if in_transactions else load.topics
    plain = [topic for topic in written if "compact" not in cleanup_policy(topic, scenario)]
    if not plain:
        return ()
    return (
        *(("lost_write",) if load.acks != 0 else ()),
        *(("replica_divergence",) if any(topic.replication_factor > 1 for topic in plain) else ()),
        *(("torn_txn",) if in_transactions else ()),
    )
