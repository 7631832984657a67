"""Nodes by role: `leader`, `follower`, `controller` ... read against the cluster's state now."""

from __future__ import annotations

import difflib
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.observations import CLIENT, Link, NodeState, PartitionView

POLL_S = 0.1
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
GROUP = "urteil-group"
"""The group of the lab's own workload, for the role `coordinator`."""

ROLES: dict[str, str] = {
    "leader": "the leader of the partition, once it is one that runs",
    "follower": "one in-sync follower of the partition that runs, by the seed",
    "followers": "all replicas of the partition but its leader",
    "successor": "the in-sync follower that is next to lead: the first by assignment",
    "straggler": "the in-sync follower that is last to lead: the last by assignment",
    "controller": "the broker that holds /controller, once it is one that runs",
    "bystander": "one broker that runs and is not the controller, by the seed",
    "random": "one broker that runs, by the seed",
    "coordinator": "the coordinator of a group, or of a transactional id (options of every fault)",
    "isr": "the in-sync replicas of the partition, its leader too",
    "minority": "fewer than half of the brokers, by the seed",
    "majority": "more than half of the brokers, by the seed",
    "all": "every broker",
    "zookeeper": "every ZooKeeper server",
    "zookeeper_leader": "the ZooKeeper server that leads the ensemble, or stands alone",
    "zookeeper_minority": "fewer than half of the ZooKeeper servers, its leader among them",
    "zookeeper_majority": "more than half of the ZooKeeper servers, by the seed",
    "client": "where the clients sit",
}


class NoTarget(Exception):
    """The role is not taken at the moment (no leader, no controller): the fault cannot act."""


def _view(controls: Controls, arguments: FaultArguments) -> PartitionView:
    topic = arguments.topic or next(
        (one for one in sorted(controls.topics()) if one[:2] != "__"), ""
    )
    if not topic:
        raise NoTarget("no topic is there whose leader or followers could be meant: make one, or "
                       "aim at a node by its name, b1 say")  # fmt: skip
    view = controls.partition(topic, arguments.partition)
    if view is None:
        raise NoTarget(f"{topic}-{arguments.partition} does not exist")
    return view


def _leader(controls: Controls, arguments: FaultArguments) -> str:
    """The leader; after its death, the one elected next."""
    deadline = time.monotonic() + arguments.election_deadline_s
    while True:
        leader = _view(controls, arguments).leader
        if leader is not None and running_nodes(controls, [leader]):
            return leader
        if time.monotonic() > deadline:
            raise NoTarget(f"{arguments.topic}-{arguments.partition} has no leader that runs")
        threading.Event().wait(POLL_S)


def _followers(controls: Controls, arguments: FaultArguments) -> list[str]:
    """Replicas that run but the leader, in the order of their assignment; those in sync when any
    are."""
    view = _view(controls, arguments)
    followers = running_nodes(controls, [node for node in view.replicas if node != view.leader])
    if not followers:
        raise NoTarget(f"{arguments.topic}-{arguments.partition} has no follower that runs")
    return [node for node in followers if node in view.isr] or followers


def _others(controls: Controls, arguments: FaultArguments) -> list[str]:
    view = _view(controls, arguments)
    return sorted(node for node in view.replicas if node != view.leader)


def _controller(controls: Controls, arguments: FaultArguments) -> str:
    """The controller; after its death, the one that comes next."""
    deadline = time.monotonic() + arguments.election_deadline_s
    while True:
        node = controls.controller()
        if node is not None and running_nodes(controls, [node]):
            return node
        if time.monotonic() > deadline:
            raise NoTarget("no broker that runs is controller")
        threading.Event().wait(POLL_S)


def _random(controls: Controls, arguments: FaultArguments, *, but: str | None = None) -> str:
    alive = running_nodes(controls, sorted({*controls.brokers} - {but}))
    if not alive:
        raise NoTarget(f"no broker runs{f' beside the controller {but}' if but else ''}")
    return arguments.random().choice(alive)


def _coordinator(controls: Controls, arguments: FaultArguments) -> str:
    """The leader of the partition that a group's, or a transactional id's, records go to."""
    transactional_id = str(arguments.options.get("transactional_id", ""))
    topic = TRANSACTIONS if transactional_id else OFFSETS
    key = transactional_id or str(arguments.options.get("group", GROUP))
    count = len(controls.partitions(topic))
    if not count:
        raise NoTarget(f"{topic} does not exist: nobody coordinates {key}")
    return _leader(controls, replace(arguments, topic=topic, partition=java_hash(key) % count))


def java_hash(text: str) -> int:
    """Java's `String.hashCode` as Kafka's `Utils.abs` takes it: its lowest value becomes 0."""
    units = text.encode("utf-16-be", "surrogatepass")
    total = 0
    for at in range(0, len(units), 2):
        total = (31 * total + int.from_bytes(units[at : at + 2], "big")) & 0xFFFF_FFFF
    signed = total - (1 << 32) if total >= 1 << 31 else total
    return 0 if signed == -(1 << 31) else abs(signed)


def _some(controls: Controls, arguments: FaultArguments, *, more: bool) -> list[str]:
    """More than half of the brokers, or fewer."""
    brokers = sorted(controls.brokers)
    few = max(1, (len(brokers) - 1) // 2)
    return sorted(arguments.random().sample(brokers, len(brokers) // 2 + 1 if more else few))


def _zookeeper_leader(controls: Controls) -> str:
    node = controls.zookeeper_leader()
    if node is None:
        raise NoTarget("no ZooKeeper server leads")
    return node


def _zookeeper_minority(controls: Controls, arguments: FaultArguments) -> list[str]:
    leader = _zookeeper_leader(controls)
    others = [node for node in sorted(controls.zookeepers) if node != leader]
    count = (len(controls.zookeepers) - 1) // 2
    if not count:
        raise NoTarget(f"{len(controls.zookeepers)} ZooKeeper servers have no minority")
    return sorted([leader, *arguments.random().sample(others, count - 1)])


def _zookeeper_majority(controls: Controls, arguments: FaultArguments) -> list[str]:
    servers = sorted(controls.zookeepers)
    return sorted(arguments.random().sample(servers, len(servers) // 2 + 1))


BY_ROLE: dict[str, Callable[[Controls, FaultArguments], list[str]]] = {
    "leader": lambda controls, arguments: [_leader(controls, arguments)],
    "follower": lambda controls, arguments: [
        arguments.random().choice(sorted(_followers(controls, arguments)))
    ],
    "followers": lambda controls, arguments: _others(controls, arguments),
    "successor": lambda controls, arguments: _followers(controls, arguments)[:1],
    "straggler": lambda controls, arguments: _followers(controls, arguments)[-1:],
    "controller": lambda controls, arguments: [_controller(controls, arguments)],
    "coordinator": lambda controls, arguments: [_coordinator(controls, arguments)],
    "isr": lambda controls, arguments: sorted(_view(controls, arguments).isr),
    "bystander": lambda controls, arguments: [
        _random(controls, arguments, but=controls.controller())
    ],
    "random": lambda controls, arguments: [_random(controls, arguments)],
    "minority": lambda controls, arguments: _some(controls, arguments, more=False),
    "majority": lambda controls, arguments: _some(controls, arguments, more=True),
    "all": lambda controls, arguments: sorted(controls.brokers),
    "zookeeper": lambda controls, arguments: sorted(controls.zookeepers),
    "zookeeper_leader": lambda controls, arguments: [_zookeeper_leader(controls)],
    "zookeeper_minority": _zookeeper_minority,
    "zookeeper_majority": _zookeeper_majority,
}


def select_nodes(
    controls: Controls, arguments: FaultArguments, target: str | None = None
) -> list[str]:
    """The nodes that `target` (or the aim's own) means now, in a fixed order.

    ValueError for a name that is neither role nor node; NoTarget when nobody has the role.
    """
    target = arguments.target if target is None else target
    chosen = BY_ROLE.get(target)
    return _named(controls, target) if chosen is None else chosen(controls, arguments)


def _named(controls: Controls, target: str) -> list[str]:
    names = [name.strip() for name in target.split(",")]
    known = {*controls.brokers, *controls.zookeepers, CLIENT}
    strange = [name for name in names if name not in known]
    if strange:
        raise ValueError(f"{strange[0]} is neither a role ({', '.join(ROLES)}) nor a node")
    return names


def select_links(controls: Controls, arguments: FaultArguments) -> list[Link]:
    """The directed links that a pair `left->right` or `left<->right` of selectors means now."""
    both = "<->" in arguments.target
    left, arrow, right = arguments.target.partition("<->" if both else "->")
    if not arrow:
        raise ValueError(f"{arguments.target} is no pair: write left->right or left<->right")
    sources = select_nodes(controls, arguments, left.strip())
    sinks = select_nodes(controls, arguments, right.strip())
    wanted = {Link(a, b) for a in sources for b in sinks if a != b}
    if both:
        wanted |= {Link(link.dst, link.src) for link in wanted}
    found = [link for link in controls.net.links() if link in wanted]
    if not found:
        raise NoTarget(f"{arguments.target} means no link")
    return found


def running_nodes(controls: Controls, chosen: Sequence[str]) -> list[str]:
    """Those of `chosen` whose process runs now."""
    return [node for node in chosen if controls.status(node).state is NodeState.RUNNING]


def require_running(controls: Controls, chosen: Sequence[str]) -> list[str]:
    """The same, for faults that need one: NoTarget when none runs."""
    found = running_nodes(controls, chosen)
    if not found:
        raise NoTarget(f"{', '.join(chosen)}: nobody runs")
    return found


def select_running(controls: Controls, arguments: FaultArguments) -> list[str]:
    """The selected nodes that run. NoTarget when none runs."""
    return require_running(controls, select_nodes(controls, arguments))


def check_target(target: str, told: str, *, brokers: int, keepers: int) -> None:
    """ValueError for a target that a fault cannot have which is aimed at what is `told`
    (`Fault.selectors`), in a cluster of that size."""
    sides = [side.strip() for side in re.split(r"<->|->", target)]
    if len(sides) > 1 and "left" not in told:
        raise ValueError(f"{target!r} is a pair of links: give {told}")
    if len(sides) > 2 or (len(sides) < 2 and told.startswith("left")):
        raise ValueError(f"{target!r} is no pair: write left->right or left<->right")
    for side in sides:
        if side not in ROLES:
            _check_nodes(side, brokers, keepers)


def _check_nodes(listed: str, brokers: int, keepers: int) -> None:
    nodes = [f"b{n + 1}" for n in range(brokers)] + [f"zk{n + 1}" for n in range(keepers)]
    for word in map(str.strip, listed.split(",")):
        if word in nodes:
            continue
        if word in ROLES:
            raise ValueError(f"a role stands alone, not in {listed!r}: list nodes, or give {word}")
        near = difflib.get_close_matches(word, ROLES, n=2, cutoff=0.6)
        mend = f"did you mean {' or '.join(near)}?" if near else f"nodes are {', '.join(nodes)}"
        raise ValueError(f"{word!r} is neither a role nor a node; {mend}")
