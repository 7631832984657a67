"""Rotates leadership over all replicas, so that final reads cover every replica.

If brokers support reassignment and election (Apache Kafka, ours), the order of each partition's
replicas is rotated and the first one elected; no broker stops. Apache Kafka before 2.4 gets both
requests by znodes. Other brokers are stopped and started in turn, so that each is the only live one
once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import zip_longest
from operator import not_
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from urteil.chaos.controls import Controls
from urteil.chaos.observations import LabFailure, NodeState, PartitionView
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until

POLL_S = 0.05
AGREEMENT_S = 10.0
REQUEST_TIMEOUT_MS = 10_000
PREFERRED = 0
STOP_DEADLINE_S = 15.0
ELECT_LEADERS = 43
ALTER_PARTITION_REASSIGNMENTS = 45
CONTROLLED_SHUTDOWN = 7
"""An API between brokers, which those of Apache Kafka with ZooKeeper advertise."""
Leaders = dict[tuple[str, int], int]
"""By topic and partition, the id of the leader."""
Order = dict[tuple[str, int], list[int]]
"""By topic and partition, the ids of its replicas, the preferred one first."""
Elect = Callable[[Order], str]
"""Requests that order and its first replicas as leaders. Returns a failure in words."""


def leadership_rounds(
    controls: Controls,
    bootstrap: Sequence[str],
    topics: Sequence[str],
    *,
    deadline_s: float,
    report: Callable[[str], None],
    agreement_s: float = AGREEMENT_S,
    restart: bool = True,
) -> Iterator[Leaders]:
    """Rounds of (topic, partition) to the id of its leader during the round.

    The first round is the current leadership; over all rounds every replica of every partition
    leads once. A round lasts until the next one is requested. At the end all brokers run again,
    also when the caller stops early. Without `restart`, brokers that cannot elect keep their
    leaders. LabFailure if a broker does not become leader within `deadline_s`.

    A round without stopped brokers begins when every running broker names its leaders to clients:
    brokers learn of an election after the metadata plane has it, and until then a former leader
    still serves fetches.
    `report` gets a sentence about a broker that names another leader after `agreement_s`.
    """
    deadline = time.monotonic() + deadline_s

    def await_agreements(rounds: Generator[Leaders]) -> Iterator[Leaders]:
        with closing(rounds):
            for leaders in rounds:
                end = min(deadline, time.monotonic() + agreement_s)
                if problem := _await_agreement(controls, leaders, end):
                    report(problem)
                yield leaders

    yield from await_agreements(leaders for leaders in (_leaders(controls, topics),))
    admin = KafkaAdminClient(
        bootstrap_servers=list(bootstrap), request_timeout_ms=REQUEST_TIMEOUT_MS
    )
    try:
        served = _served_apis(admin)
        if {ELECT_LEADERS, ALTER_PARTITION_REASSIGNMENTS} <= served:
            yield from await_agreements(_by_election(controls, _elector(admin), topics, deadline))
        elif CONTROLLED_SHUTDOWN in served:
            yield from await_agreements(
                _by_election(controls, _znode_elector(controls), topics, deadline)
            )
        elif restart:
            yield from _by_restart(controls, topics, deadline)
    finally:
        admin.close()


def _await_agreement(controls: Controls, leaders: Leaders, deadline: float) -> str:
    """Wait until all running brokers name these leaders. Returns a disagreement at the deadline."""
    deadline_s = max(0.0, deadline - time.monotonic())
    return until(
        lambda: _describe_disagreement(controls, leaders),
        not_,
        deadline_s=deadline_s,
        poll_s=POLL_S,
    )


def _describe_disagreement(controls: Controls, leaders: Leaders) -> str:
    for broker in controls.brokers:
        if controls.status(broker).state is not NodeState.RUNNING:
            continue
        try:
            named = controls.named_leaders(broker)
        except LabFailure as failure:
            return f"before the final reads, {failure}"
        for (topic, partition), leader in leaders.items():
            if (other := named.get((topic, partition), -1)) != leader:
                return (
                    f"before the final reads, {broker} names {_broker(other)} as leader of "
                    f"{topic}-{partition}, and the metadata plane {_broker(leader)}"
                )
    return ""


def _broker(number: int) -> str:
    return f"b{number}" if number >= 0 else "no broker"


def _served_apis(admin: Any) -> set[int]:
    """The keys of the APIs that the brokers serve. (kafka-python's own `api_versions` fails on an
    unknown key.)"""
    return set(admin._manager.broker_version_data.api_versions)


def _elector(admin: Any) -> Elect:
    """Requests elections by protocol."""

    def elect(order: Order) -> str:
        partitions = {TopicPartition(*slot): replicas for slot, replicas in order.items()}
        try:
            admin.alter_partition_reassignments(partitions)
            admin.elect_leaders(PREFERRED, _by_topic(order), raise_errors=False)
        except KafkaError as error:
            return f": {error}"
        return ""

    return elect


def _znode_elector(controls: Controls) -> Elect:
    """Requests elections by znodes: first the order, then, once it holds, its first replicas."""

    def elect(order: Order) -> str:
        topics = sorted({topic for topic, _ in order})
        current = {
            _slot(view): [_id(name) for name in view.replicas] for view in _views(controls, topics)
        }
        if any(current.get(slot) != replicas for slot, replicas in order.items()):
            controls.zookeeper_admin.request_reassignment(order)
        else:
            controls.zookeeper_admin.request_election(order)
        return ""

    return elect


def _by_election(
    controls: Controls, request: Elect, topics: Sequence[str], deadline: float
) -> Generator[Leaders]:
    views = _views(controls, topics)
    first = {_slot(view): [_id(name) for name in view.replicas] for view in views}
    first_leaders = {_slot(view): _id(view.leader) for view in views if view.leader}
    turns = max(len(replicas) for replicas in first.values())
    try:
        for turn in range(1, turns):
            order = {slot: _rotate(first[slot], first_leaders[slot], turn) for slot in first}
            yield _elect(controls, request, order, topics, deadline)
    finally:
        leaders = _elect(controls, request, first, topics, deadline)
    yield leaders


def _rotate(replicas: list[int], leader: int, turn: int) -> list[int]:
    """The rotated replicas: the one `turn` places after `leader` comes first."""
    at = (replicas.index(leader) + turn) % len(replicas)
    return replicas[at:] + replicas[:at]


def _elect(
    controls: Controls,
    request: Elect,
    order: Order,
    topics: Sequence[str],
    deadline: float,
) -> Leaders:
    """Give each partition this order of replicas, and make the first one leader."""
    leaders = {slot: replicas[0] for slot, replicas in order.items()}

    def elect() -> str:
        failure = request(order)
        are_elected = _leaders(controls, topics) == leaders
        return "" if are_elected else f"leaders are not {leaders}{failure}"

    _await_no_problem(elect, deadline)
    return leaders


def _by_restart(controls: Controls, topics: Sequence[str], deadline: float) -> Iterator[Leaders]:
    """Let each broker be alone once. The next one starts and catches up during the reads; it leads
    nothing until the one before it stops."""
    brokers = list(controls.brokers)
    if len(brokers) == 1:
        return
    with ThreadPoolExecutor(max_workers=len(brokers)) as pool:

        def start(broker: str) -> None:
            controls.start(broker, deadline_s=_remaining_s(deadline))

        try:
            for broker, following in zip_longest(brokers, brokers[1:]):
                _await_in_sync(controls, topics, broker, deadline)
                _stop_all_but(controls, broker)
                leaders = _await_leads_all(controls, topics, broker, deadline)
                started = pool.submit(start, following or broker)
                yield leaders
                started.result()
        finally:
            list(pool.map(start, brokers))
    controls.await_healthy(deadline_s=_remaining_s(deadline))


def _stop_all_but(controls: Controls, broker: str) -> None:
    others = [other for other in controls.brokers if other != broker]
    run_on_all(lambda other: controls.stop(other, deadline_s=STOP_DEADLINE_S), others)


def _await_in_sync(controls: Controls, topics: Sequence[str], broker: str, deadline: float) -> None:
    def describe() -> str:
        own = [view for view in _views(controls, topics) if broker in view.replicas]
        is_in_sync = all(broker in view.isr for view in own)
        return "" if is_in_sync else f"{broker} did not come back into the ISR"

    _await_no_problem(describe, deadline)


def _await_leads_all(
    controls: Controls, topics: Sequence[str], broker: str, deadline: float
) -> Leaders:
    """Wait until the broker leads all its partitions. Returns them with its id."""
    own: list[PartitionView] = []

    def describe() -> str:
        own[:] = [view for view in _views(controls, topics) if broker in view.replicas]
        leads_all = all(view.leader == broker for view in own)
        return "" if leads_all else f"{broker} did not become leader of its partitions"

    _await_no_problem(describe, deadline)
    return {_slot(view): _id(broker) for view in own}


def _views(controls: Controls, topics: Sequence[str]) -> list[PartitionView]:
    return [view for topic in topics for view in controls.partitions(topic)]


def _leaders(controls: Controls, topics: Sequence[str]) -> Leaders:
    return {_slot(v): _id(v.leader) for v in _views(controls, topics) if v.leader is not None}


def _by_topic(slots: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    by_name: dict[str, list[int]] = {}
    for topic, partition in slots:
        by_name.setdefault(topic, []).append(partition)
    return by_name


def _slot(view: PartitionView) -> tuple[str, int]:
    return view.topic, view.partition


def _id(name: str) -> int:
    return int(name.removeprefix("b"))


def _remaining_s(deadline: float) -> float:
    return max(1.0, deadline - time.monotonic())


def _await_no_problem(describe: Callable[[], str], deadline: float) -> None:
    """Raises LabFailure with the problem at the deadline."""
    if problem := until(describe, not_, deadline_s=deadline - time.monotonic(), poll_s=POLL_S):
        raise LabFailure(f"the round of leadership failed: {problem}")
