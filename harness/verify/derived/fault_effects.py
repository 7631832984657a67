"""Groups of fault effects that checks distinguish, and predicates over the effects of a fault."""

from __future__ import annotations

from collections.abc import Set

from urteil.chaos.effects import Effect
from urteil.harness.evidence.fault_effects import effects_of
from urteil.harness.verify.evidence import Row

ENDS_NODES = frozenset({Effect.KILLS_NODES, Effect.STOPS_NODES})
"""Nodes are down until healing, and nothing else happens."""

MAKES_UNAVAILABLE = ENDS_NODES | {Effect.PAUSES_NODES, Effect.CUTS_LINKS}
"""Nodes are down, paused or unreachable until healing, and nothing else happens."""

OF_CLIENTS = frozenset(
    {
        Effect.KILLS_CLIENTS,
        Effect.PAUSES_CLIENTS,
        Effect.STOPS_POLLS,
        Effect.DOUBLES_CLIENTS,
        Effect.CHANGES_MEMBERS,
    }
)
"""The cluster itself is not disturbed."""

OF_DISKS = frozenset(
    {
        Effect.EMPTIES_DISKS,
        Effect.REMOVES_DISKS,
        Effect.FILLS_DISKS,
        Effect.LOCKS_DISKS,
        Effect.SLOWS_DISKS,
    }
)
"""A broker cannot use its disk as before."""

ADMIN_TASKS = frozenset({Effect.MOVES_REPLICAS, Effect.ADDS_PARTITIONS, Effect.DELETES_TOPICS})
"""The fault is a task for the controller that disturbs no other task."""


def has_any(fault: Row, effects: Set[Effect]) -> bool:
    """Whether a fault has one of these effects."""
    return not effects_of(fault).isdisjoint(effects)


def has_only(fault: Row, effects: Set[Effect]) -> bool:
    """Whether all effects of a fault are known and among these."""
    known = effects_of(fault)
    return bool(known) and known <= effects
