"""Versions of the inter-broker protocol, as `inter.broker.protocol.version` names them."""

from __future__ import annotations

from functools import cache

_NAMES = """\
0.8.0 0.8.1 0.8.2 0.9.0 0.10.0-IV0 0.10.0-IV1 0.10.1-IV0 0.10.1-IV1 0.10.1-IV2 0.10.2-IV0
0.11.0-IV0 0.11.0-IV1 0.11.0-IV2 1.0-IV0 1.1-IV0 2.0-IV0 2.0-IV1 2.1-IV0 2.1-IV1 2.1-IV2 2.2-IV0
2.2-IV1 2.3-IV0 2.3-IV1 2.4-IV0 2.4-IV1 2.5-IV0 2.6-IV0 2.7-IV0 2.7-IV1 2.7-IV2 2.8-IV0 2.8-IV1
3.0-IV0 3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2
3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1
"""
"""All versions in order (`MetadataVersion` of 3.9)."""


@cache
def _ranks() -> dict[str, int]:
    """The rank of each full and short name. A short name means its last stable version in 3.9."""
    ranks = {}
    for rank, name in enumerate(_NAMES.split()):
        ranks[name] = rank
        if not name.startswith("4."):
            ranks[name.partition("-")[0]] = rank
    return ranks


def rank(version: str) -> int | None:
    """Return the version's rank, or None for an unknown version. `3.9.1` is `3.9`."""
    count = 3 if version.startswith("0.") else 2
    numbers = version.rstrip(".").split(".")
    return _ranks().get(".".join(numbers[:count]) if len(numbers) > count else version)


def record_format(version: str) -> int:
    """Return the newest record format (magic) of a valid version."""
    place = rank(version)
    assert place is not None
    return sum(place >= _ranks()[first] for first in ("0.10.0-IV0", "0.11.0-IV0"))


def at_least(version: str, other: str) -> bool:
    """Whether a valid version is not older than another."""
    place, least = rank(version), rank(other)
    assert place is not None
    assert least is not None
    return place >= least
