"""Nodes by role: `leader`, `follower`, `controller` ... read against the cluster's state now."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from urteil.chaos.aim import Aim
from urteil.chaos.controls import CLIENT, Controls, Link, NodeState, PartitionView

POLL_S = 0.1

ROLES: dict[str, str] = {
    "leader": "the leader of the partition, once it is one that runs",
    "follower": "one in-sync follower of the partition, by the seed",
    "followers": "all replicas of the partition but its leader",
    "successor": "the in-sync follower that is next to lead: the first by assignment",
    "straggler": "the in-sync follower that is last to lead: the last by assignment",
    "controller": "the broker that holds /controller",
    "random": "one broker, by the seed",
    "minority": "fewer than half of the brokers, by the seed",
    "all": "every broker",
    "zookeeper": "every ZooKeeper server",
    "client": "where the clients sit",
}


class NoTarget(Exception):
    """The role is not taken at the moment (no leader, no controller): the fault cannot act."""


def _view(controls: Controls, aim: Aim) -> PartitionView:
    view = controls.partition(aim.topic, aim.partition)
    if view is None:
        raise NoTarget(f"{aim.topic}-{aim.partition} does not exist")
    return view


def _leader(controls: Controls, aim: Aim) -> str:
    """The leader; after its death, the one elected next."""
    deadline = time.monotonic() + aim.election_deadline_s
    while True:
        leader = _view(controls, aim).leader
        if leader is not None and running(controls, [leader]):
            return leader
        if time.monotonic() > deadline:
            raise NoTarget(f"{aim.topic}-{aim.partition} has no leader that runs")
        threading.Event().wait(POLL_S)


def _followers(controls: Controls, aim: Aim) -> list[str]:
    """Replicas but the leader, in the order of their assignment; those in sync when any are."""
    view = _view(controls, aim)
    followers = [node for node in view.replicas if node != view.leader]
    if not followers:
        raise NoTarget(f"{aim.topic}-{aim.partition} has no follower")
    return [node for node in followers if node in view.isr] or followers


def _others(controls: Controls, aim: Aim) -> list[str]:
    view = _view(controls, aim)
    return sorted(node for node in view.replicas if node != view.leader)


def _controller(controls: Controls) -> str:
    node = controls.controller()
    if node is None:
        raise NoTarget("no broker is controller")
    return node


def _minority(controls: Controls, aim: Aim) -> list[str]:
    brokers = sorted(controls.brokers)
    return sorted(aim.random().sample(brokers, max(1, (len(brokers) - 1) // 2)))


def nodes(controls: Controls, aim: Aim, target: str | None = None) -> list[str]:
    """The nodes that `target` (or the aim's own) means now, in a fixed order.

    ValueError for a name that is neither role nor node; NoTarget when nobody has the role.
    """
    target = aim.target if target is None else target
    match target:
        case "leader":
            return [_leader(controls, aim)]
        case "follower":
            return [aim.random().choice(sorted(_followers(controls, aim)))]
        case "followers":
            return _others(controls, aim)
        case "successor":
            return _followers(controls, aim)[:1]
        case "straggler":
            return _followers(controls, aim)[-1:]
        case "controller":
            return [_controller(controls)]
        case "random":
            return [aim.random().choice(sorted(controls.brokers))]
        case "minority":
            return _minority(controls, aim)
        case "all":
            return sorted(controls.brokers)
        case "zookeeper":
            return sorted(controls.zookeepers)
        case _:
            return _named(controls, target)


def _named(controls: Controls, target: str) -> list[str]:
    names = [name.strip() for name in target.split(",")]
    known = {*controls.brokers, *controls.zookeepers, CLIENT}
    strange = [name for name in names if name not in known]
    if strange:
        raise ValueError(f"{strange[0]} is neither a role ({', '.join(ROLES)}) nor a node")
    return names


def links(controls: Controls, aim: Aim) -> list[Link]:
    """The directed links that a pair `left->right` or `left<->right` of selectors means now."""
    both = "<->" in aim.target
    left, arrow, right = aim.target.partition("<->" if both else "->")
    if not arrow:
        raise ValueError(f"{aim.target} is no pair: write left->right or left<->right")
    sources = nodes(controls, aim, left.strip())
    sinks = nodes(controls, aim, right.strip())
    wanted = {Link(a, b) for a in sources for b in sinks if a != b}
    if both:
        wanted |= {Link(link.dst, link.src) for link in wanted}
    found = [link for link in controls.net.links() if link in wanted]
    if not found:
        raise NoTarget(f"{aim.target} means no link")
    return found


def running(controls: Controls, chosen: Sequence[str]) -> list[str]:
    """Those of `chosen` whose process runs now."""
    return [node for node in chosen if controls.status(node).state is NodeState.RUNNING]
