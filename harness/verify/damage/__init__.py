"""The damages: each changes evidence and declares the finding that must result.

The self-test of a run applies them to a copy of a part of its evidence, the tests to made-up runs.
A damage is a function that is decorated with `@damage`. It uses victims: healthy records of one
partition, whose places it may change.
"""

from __future__ import annotations

from urteil.harness.verify.damage import (
    answers,
    availability,
    cluster,
    compaction_and_retention,
    groups,
    member_departures,
    mirrors,
    outputs,
    quorum,
    records,
    replicas,
    rights,
    share_groups,
    transactions,
)
from urteil.harness.verify.damage.added_topics import (
    MADE_UP_SETTINGS,
    MADE_UP_TOPICS,
    mirror_of,
)
from urteil.harness.verify.damage.copy import Copy, Damage, Trace, Untried, declared_in

_MODULES = (
    *(replicas, records, groups, cluster, answers, compaction_and_retention, rights, transactions),
    *(member_departures, outputs, quorum, availability, share_groups),
    mirrors,
)

DAMAGES: tuple[Damage, ...] = tuple(
    sorted(
        (damage for module in _MODULES for damage in declared_in(module)),
        key=lambda damage: not damage.at_the_ends,
    )
)
"""Every damage, in an order in which all of them may be applied to one copy: damages take their
victims from the beginning of the log on, and those of the cluster's states act at its end."""

__all__ = [
    "DAMAGES",
    "MADE_UP_SETTINGS",
    "MADE_UP_TOPICS",
    "Copy",
    "Damage",
    "Trace",
    "Untried",
    "mirror_of",
]
