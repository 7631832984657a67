"""What the members of a group can all do, and which of it they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from urteil.broker.groups.member import Member


def common(members: Collection[Member], names: set[str]) -> set[str]:
    """Those of `names` that every member can do."""
    return names.intersection(*({name for name, _ in m.protocols} for m in members))


def elected(members: Collection[Member]) -> str:
    """What most of them want most, of what all can do."""
    some = next(iter(members))
    candidates = common(members, {name for name, _ in some.protocols})
    votes = Counter(m.vote(candidates) for m in members)
    return votes.most_common(1)[0][0]
