"""The committed offsets of groups without members: what was committed remains, and what was deleted
or has expired does not return."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.suites.simulation.cluster import PROPERTIES
from urteil.suites.simulation.coordinators import Coordinators
from urteil.suites.simulation.evidence import Evidence
from urteil.suites.simulation.history import NO_OFFSET, ExpectedOffset, OffsetRead
from urteil.suites.simulation.simple_groups import CHECK_MS, leader_epoch_of

_LAG_MS, _SESSION_MS = (
    float(PROPERTIES[name]) for name in ("replica.lag.time.max.ms", "zookeeper.session.timeout.ms")
)
REPLICATED_S = (1.5 * _LAG_MS + _SESSION_MS) / 1000
"""A coordinator acknowledges the deletion of offsets before followers have it, as Apache Kafka's
does. One that dies before a follower has it loses the deletion; its successor is elected when its
session has ended."""
EXPIRED_S = 3 * CHECK_MS / 1000
"""After its takeover a coordinator may have offsets for so long that expired before."""


def commit_register(evidence: Evidence) -> Iterator[str]:
    """The coordinator of the moment returns the expected offset with its leader epoch."""
    coordinators = Coordinators(evidence)
    for read in evidence.history.offset_reads:
        leader, since_s = coordinators.at(read.complete_s)
        if read.node != leader or since_s > read.invoke_s or _is_as_expected(read):
            continue
        expected = read.expected
        if expected.offset == NO_OFFSET and (
            read.invoke_s < since_s + EXPIRED_S or _may_be_lost(coordinators, expected)
        ):
            continue
        yield (
            f"broker {leader} returned offset {read.offset} of leader epoch {read.leader_epoch} "
            f"for {expected.group} at {read.complete_s:.3f} s, and {expected.offset} was expected "
            f"since {expected.since_s:.3f} s"
        )


def _is_as_expected(read: OffsetRead) -> bool:
    expected = read.expected.offset
    is_epoch_right = expected == NO_OFFSET or read.leader_epoch == leader_epoch_of(expected)
    return read.offset == expected and is_epoch_right


def _may_be_lost(coordinators: Coordinators, expected: ExpectedOffset) -> bool:
    """Whether a coordinator that was deposed around a deletion accepted it."""
    if expected.deleted_by < 0:
        return False
    leader, _ = coordinators.at(expected.invoke_s)
    return leader != expected.deleted_by or coordinators.changed(
        expected.invoke_s, expected.since_s + REPLICATED_S
    )
