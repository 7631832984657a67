"""A mix: a cluster whose brokers are of several kinds, as `mix:kafka,urteil,urteil`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from urteil.harness.targets.target import Target

PREFIX = "mix:"


@dataclass(frozen=True, slots=True)
class Mix:
    """One target for each broker, in the order of the ids from 1."""

    kinds: tuple[Target, ...]


def kinds_of(target: Target | Mix, brokers: int) -> Sequence[Target]:
    """The kind of each broker. Raises ValueError for a mix of another size."""
    if not isinstance(target, Mix):
        return (target,) * brokers
    if len({kind.has_zookeeper for kind in target.kinds}) > 1:
        raise ValueError("a mix has brokers with ZooKeeper or brokers with KRaft, not both")
    if len(target.kinds) != brokers:
        raise ValueError(
            f"the mix names {len(target.kinds)} brokers, the cluster has {brokers}: "
            "name as many targets as there are brokers"
        )
    return target.kinds


def size_of(target: str, default: int) -> int:
    """The number of brokers of a mix; `default` for other targets."""
    if not target.startswith(PREFIX):
        return default
    return target.count(",") + 1
