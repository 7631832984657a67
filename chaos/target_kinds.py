"""What the target of a fault may be, as far as it can be checked before a run."""

from __future__ import annotations

from enum import Enum, auto

from urteil.chaos import client_selectors, node_selectors


class TargetKind(Enum):
    NODES = auto()
    """A role, or nodes by name."""
    NODES_OR_LINKS = auto()
    """Or the links between two roles or nodes: `left->right`, `left<->right`."""
    LINKS = auto()
    ALL_BROKERS = auto()
    """`all` alone."""
    CLIENTS = auto()
    OTHER = auto()
    """A topic or a client id, which is known during the run only, or anything."""


def check_target(
    kind: TargetKind, target: str, selectors: str, *, brokers: int, zookeepers: int
) -> None:
    """ValueError for a target that a fault cannot have in a cluster of that size. `selectors` are
    its targets in words."""
    if kind is TargetKind.CLIENTS:
        client_selectors.check_target(target)
    elif kind is TargetKind.ALL_BROKERS:
        if target != "all":
            raise ValueError(f"{target!r} is not all: this fault is of all brokers")
    elif kind is not TargetKind.OTHER:
        sides = node_selectors.link_sides(target)
        if len(sides) > 1 and kind is TargetKind.NODES:
            raise ValueError(f"{target!r} is a pair of links: give {selectors}")
        if len(sides) > 2 or (len(sides) < 2 and kind is TargetKind.LINKS):
            raise ValueError(f"{target!r} is no pair: give left->right or left<->right")
        for side in sides:
            node_selectors.check_side(side, brokers=brokers, zookeepers=zookeepers)
