"""Bugs that others published: what clients saw of them, and the releases that have them."""

from urteil.harness.known_bugs import (
    administration,
    cleaning,
    lookups,
    offsets,
    replication,
    startup,
    transactions,
    truncation,
)
from urteil.harness.known_bugs.known_bug import KnownBug

KNOWN_BUGS: dict[str, KnownBug] = {
    bug.name: bug
    for subject in (
        *(truncation, replication, transactions, offsets),
        *(cleaning, startup, lookups, administration),
    )
    for bug in subject.BUGS
}
"""Every bug by name."""

__all__ = ["KNOWN_BUGS", "KnownBug"]
