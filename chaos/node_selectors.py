"""Selects nodes by role (`leader`, `follower`, `controller` ...) from the cluster's state."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.observations import CLIENT, WAN, Link, NodeState, PartitionView
from urteil.chaos.similar_names import suggest
from urteil.chaos.topology import EAST, WEST
from urteil.chaos.waiting import until

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
GROUP = "urteil-group"
"""The group of the lab's own workload, for the role `coordinator`."""

ROLES: dict[str, str] = {
    "leader": "the leader of the partition, when it runs",
    "follower": "a running in-sync follower of the partition, by the seed",
    "followers": "all replicas of the partition except the leader",
    "successor": "the in-sync follower that is first in the assignment: the next leader",
    "straggler": "the in-sync follower that is last in the assignment",
    "controller": "the holder of /controller, or the leader of KRaft's quorum, when it runs",
    "bystander": "a running broker that is not the controller, by the seed",
    "random": "a running broker, by the seed",
    "coordinator": "the coordinator of a group, or of a transactional id (options of every fault)",
    "isr": "the in-sync replicas of the partition, including the leader",
    "minority": "fewer than half of the brokers, by the seed",
    "majority": "more than half of the brokers, by the seed",
    "all": "every broker",
    "zookeeper": "every ZooKeeper server",
    "zookeeper_leader": "the ZooKeeper server that is leader or standalone",
    "zookeeper_minority": "fewer than half of the ZooKeeper servers, including the leader",
    "zookeeper_majority": "more than half of the ZooKeeper servers, by the seed",
    "quorum": "every controller of KRaft's quorum",
    "quorum_leader": "the leader of KRaft's quorum, when it runs",
    "quorum_follower": "a running controller that does not lead the quorum, by the seed",
    "quorum_minority": "fewer than half of the controllers, including the leader",
    "quorum_majority": "more than half of the controllers, by the seed",
    "sender": "the broker that sent the request of the fault's event (`link:API:...`)",
    "receiver": "the broker that receives the request of the fault's event",
    "client": "the clients of the workload",
    "wan": "the application at the other cluster; without an arrow, its links to all brokers",
}


LINK_ENDS = ("sender", "receiver")
"""Roles of faults that are anchored to a request or an answer."""


class NoTarget(Exception):
    """No node has the role now (no leader, no controller): the fault cannot act."""


def split_cluster(target: str) -> tuple[str, str]:
    """The cluster and the selector of a target: `west:leader` selects in the second cluster, and
    `leader`, as `east:leader`, in the first."""
    cluster, colon, selector = target.partition(":")
    if colon and cluster in (EAST, WEST):
        return cluster, selector.strip()
    return EAST, target


def _view(controls: Controls, arguments: FaultArguments) -> PartitionView:
    topic = arguments.topic or next(
        (topic for topic in sorted(controls.topics()) if topic[:2] != "__"), ""
    )
    if not topic:
        raise NoTarget("no topic exists, so no leader or follower can be selected: create one, or "
                       "aim at a node by its name, such as b1")  # fmt: skip
    view = controls.partition(topic, arguments.partition)
    if view is None:
        raise NoTarget(f"{topic}-{arguments.partition} does not exist")
    return view


def _leader(controls: Controls, arguments: FaultArguments) -> str:
    """The leader; if it is dead, the next one."""
    leader = _await_running(controls, lambda: _view(controls, arguments).leader, arguments)
    if leader is None:
        raise NoTarget(f"{arguments.topic}-{arguments.partition} has no running leader")
    return leader


def _await_running(
    controls: Controls, elected: Callable[[], str | None], arguments: FaultArguments
) -> str | None:
    """The elected node that runs; None if there is none within the deadline for an election."""

    def read() -> str | None:
        node = elected()
        return node if node is not None and running_nodes(controls, [node]) else None

    return until(read, deadline_s=arguments.election_deadline_s)


def _followers(controls: Controls, arguments: FaultArguments) -> list[str]:
    """Running replicas except the leader, in the order of assignment; only in-sync ones, if there
    are any."""
    view = _view(controls, arguments)
    followers = running_nodes(controls, [node for node in view.replicas if node != view.leader])
    if not followers:
        raise NoTarget(f"{arguments.topic}-{arguments.partition} has no running follower")
    return [node for node in followers if node in view.isr] or followers


def _non_leaders(controls: Controls, arguments: FaultArguments) -> list[str]:
    view = _view(controls, arguments)
    return sorted(node for node in view.replicas if node != view.leader)


def _controller(controls: Controls, arguments: FaultArguments) -> str:
    """The controller; if it is dead, the next one."""
    node = _await_running(controls, controls.controller, arguments)
    if node is None:
        raise NoTarget("no running node is controller")
    return node


def _random(controls: Controls, arguments: FaultArguments, *, excluding: str | None = None) -> str:
    alive = running_nodes(controls, sorted({*controls.brokers} - {excluding}))
    if not alive:
        raise NoTarget(
            f"no broker runs{f' except the controller {excluding}' if excluding else ''}"
        )
    return arguments.random().choice(alive)


def _coordinator(controls: Controls, arguments: FaultArguments) -> str:
    """The leader of the partition that holds a group or a transactional id."""
    transactional_id = str(arguments.options.get("transactional_id", ""))
    topic = TRANSACTIONS if transactional_id else OFFSETS
    key = transactional_id or str(arguments.options.get("group", GROUP))
    count = len(controls.partitions(topic))
    if not count:
        raise NoTarget(f"{topic} does not exist: no broker coordinates {key}")
    return _leader(controls, replace(arguments, topic=topic, partition=java_hash(key) % count))


def java_hash(text: str) -> int:
    """Java's `String.hashCode` after Kafka's `Utils.abs`, which maps the lowest value to 0."""
    units = text.encode("utf-16-be", "surrogatepass")
    total = 0
    for at in range(0, len(units), 2):
        total = (31 * total + int.from_bytes(units[at : at + 2], "big")) & 0xFFFF_FFFF
    signed = total - (1 << 32) if total >= 1 << 31 else total
    return 0 if signed == -(1 << 31) else abs(signed)


def _link_end(controls: Controls, arguments: FaultArguments, end: int) -> str:
    """The node at one end of the link of the fault's event, by its number in LINK_ENDS."""
    node = arguments.event_link.partition("->")[2 * end]
    if node not in controls.brokers:
        seen = arguments.event_link or "no request or answer"
        raise NoTarget(f"{arguments.target} is not a broker: the fault began at {seen}")
    return node


def _sample(controls: Controls, arguments: FaultArguments, *, more: bool) -> list[str]:
    """A random majority of the brokers, or a random minority."""
    brokers = sorted(controls.brokers)
    minority = max(1, (len(brokers) - 1) // 2)
    return sorted(arguments.random().sample(brokers, len(brokers) // 2 + 1 if more else minority))


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


def _voters(controls: Controls) -> list[str]:
    voters = sorted(controls.voters)
    if not voters:
        raise NoTarget("the cluster has no quorum of KRaft")
    return voters


def _quorum_follower(controls: Controls, arguments: FaultArguments) -> str:
    followers = {*_voters(controls)} - {controls.controller()}
    alive = running_nodes(controls, sorted(followers))
    if not alive:
        raise NoTarget("no follower of the quorum runs")
    return arguments.random().choice(alive)


def _quorum_minority(controls: Controls, arguments: FaultArguments) -> list[str]:
    voters = _voters(controls)
    count = (len(voters) - 1) // 2
    if not count:
        raise NoTarget(f"a quorum of {len(voters)} has no minority")
    leader = _controller(controls, arguments)
    others = [node for node in voters if node != leader]
    return sorted([leader, *arguments.random().sample(others, count - 1)])


def _quorum_majority(controls: Controls, arguments: FaultArguments) -> list[str]:
    voters = _voters(controls)
    return sorted(arguments.random().sample(voters, len(voters) // 2 + 1))


BY_ROLE: dict[str, Callable[[Controls, FaultArguments], list[str]]] = {
    "leader": lambda controls, arguments: [_leader(controls, arguments)],
    "follower": lambda controls, arguments: [
        arguments.random().choice(sorted(_followers(controls, arguments)))
    ],
    "followers": lambda controls, arguments: _non_leaders(controls, arguments),
    "successor": lambda controls, arguments: _followers(controls, arguments)[:1],
    "straggler": lambda controls, arguments: _followers(controls, arguments)[-1:],
    "controller": lambda controls, arguments: [_controller(controls, arguments)],
    "coordinator": lambda controls, arguments: [_coordinator(controls, arguments)],
    "isr": lambda controls, arguments: sorted(_view(controls, arguments).isr),
    "bystander": lambda controls, arguments: [
        _random(controls, arguments, excluding=controls.controller())
    ],
    "random": lambda controls, arguments: [_random(controls, arguments)],
    "sender": lambda controls, arguments: [_link_end(controls, arguments, 0)],
    "receiver": lambda controls, arguments: [_link_end(controls, arguments, 1)],
    "minority": lambda controls, arguments: _sample(controls, arguments, more=False),
    "majority": lambda controls, arguments: _sample(controls, arguments, more=True),
    "all": lambda controls, arguments: sorted(controls.brokers),
    "zookeeper": lambda controls, arguments: sorted(controls.zookeepers),
    "zookeeper_leader": lambda controls, arguments: [_zookeeper_leader(controls)],
    "zookeeper_minority": _zookeeper_minority,
    "zookeeper_majority": _zookeeper_majority,
    "quorum": lambda controls, _arguments: _voters(controls),
    "quorum_leader": lambda controls, arguments: [_controller(controls, arguments)],
    "quorum_follower": lambda controls, arguments: [_quorum_follower(controls, arguments)],
    "quorum_minority": _quorum_minority,
    "quorum_majority": _quorum_majority,
}


def select_nodes(
    controls: Controls, arguments: FaultArguments, target: str | None = None
) -> list[str]:
    """The nodes that `target` (default: of the arguments) selects now, in a fixed order.

    ValueError for a name that is neither role nor node; NoTarget if no node has the role.
    """
    target = arguments.target if target is None else target
    chosen = BY_ROLE.get(target)
    return _nodes_by_name(controls, target) if chosen is None else chosen(controls, arguments)


def _nodes_by_name(controls: Controls, target: str) -> list[str]:
    names = [name.strip() for name in target.split(",")]
    known = {*controls.nodes, CLIENT, WAN}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{unknown[0]} is neither a role ({', '.join(ROLES)}) nor a node")
    return names


def select_links(controls: Controls, arguments: FaultArguments) -> list[Link]:
    """The directed links that a pair `left->right` or `left<->right` of selectors selects now.

    An election between the selections of both ends may make them one node: then both are selected
    again, until the deadline for an election.
    """
    target = f"{WAN}->all" if arguments.target == WAN else arguments.target
    both = "<->" in target
    left, arrow, right = target.partition("<->" if both else "->")
    if not arrow:
        raise ValueError(f"{arguments.target} is not a pair: give left->right or left<->right")
    left, right = left.strip(), right.strip()

    def select_pairs() -> set[Link]:
        sources = select_nodes(controls, arguments, left)
        sinks = select_nodes(controls, arguments, right)
        return {Link(a, b) for a in sources for b in sinks if a != b}

    deadline_s = arguments.election_deadline_s if left != right else 0.0
    chosen = until(select_pairs, deadline_s=deadline_s)
    if both:
        chosen |= {Link(link.dst, link.src) for link in chosen}
    selected = [link for link in controls.net.links() if link in chosen]
    if not selected:
        raise NoTarget(f"{arguments.target} selects no link")
    return selected


def running_nodes(controls: Controls, chosen: Sequence[str]) -> list[str]:
    """The nodes whose processes run now."""
    return [node for node in chosen if controls.status(node).state is NodeState.RUNNING]


def require_running(controls: Controls, chosen: Sequence[str]) -> list[str]:
    """The running nodes. NoTarget if none runs."""
    alive = running_nodes(controls, chosen)
    if not alive:
        raise NoTarget(f"{', '.join(chosen)}: no such node runs")
    return alive


def select_running(controls: Controls, arguments: FaultArguments) -> list[str]:
    """The selected nodes that run. NoTarget when none runs."""
    return require_running(controls, select_nodes(controls, arguments))


def check_target(
    target: str,
    selectors: str,
    *,
    brokers: Sequence[str],
    zookeepers: Sequence[str],
    voters: Sequence[str] = (),
) -> None:
    """ValueError for a target that a fault with these `selectors` (`Fault.selectors`) cannot have
    in a cluster of these nodes. `voters` are those of KRaft's quorum."""
    sides = [side.strip() for side in re.split(r"<->|->", target)]
    if len(sides) > 1 and "left" not in selectors:
        raise ValueError(f"{target!r} is a pair of links: give {selectors}")
    if len(sides) > 2 or (len(sides) < 2 and selectors.startswith("left") and target != WAN):
        raise ValueError(f"{target!r} is not a pair: give left->right or left<->right")
    for side in sides:
        if side.startswith("zookeeper") and not zookeepers:
            raise ValueError(f"{side!r}: the cluster has no ZooKeeper, its metadata is KRaft's")
        if side.startswith("quorum") and not voters:
            raise ValueError(f"{side!r}: the cluster has no quorum of KRaft, but ZooKeeper")
        if side not in ROLES:
            _check_nodes(side, list(dict.fromkeys([*brokers, *zookeepers, *voters])))


def _check_nodes(listed: str, nodes: Sequence[str]) -> None:
    for word in map(str.strip, listed.split(",")):
        if word in nodes:
            continue
        if word in ROLES:
            raise ValueError(
                f"a role cannot be part of the list {listed!r}: list nodes, or give {word}"
            )
        hint = suggest(word, ROLES, otherwise=f"nodes are {', '.join(nodes)}")
        raise ValueError(f"{word!r} is neither a role nor a node; {hint}")
