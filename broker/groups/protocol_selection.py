"""The protocols (assignors) that all members of a group support, and the one that they elect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from urteil.broker.groups.member import Member


def common_protocols(members: Collection[Member], names: set[str]) -> set[str]:
    """The protocols of `names` that every member supports."""
    return names.intersection(*({name for name, _ in m.protocols} for m in members))


def select_protocol(members: Collection[Member]) -> str:
    """The protocol with the most votes, among those that all members support."""
    some = next(iter(members))
    candidates = common_protocols(members, {name for name, _ in some.protocols})
    votes = Counter(m.vote(candidates) for m in members)
    return votes.most_common(1)[0][0]
