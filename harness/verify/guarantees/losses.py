"""Excuses for missing and displaced records: losses by acks, elections and disks.

The conditions read columns of the violation's row: `acks`, `n_reads` (the number of readers that
received the record), `any_floor` and `unclean_floor` (the offsets at which leader epochs, and
unclean ones, began after its send), `unclean_on`, and `lost_floor` (the offset from which on faults
destroyed every in-sync replica).
"""

from __future__ import annotations

from dataclasses import replace

from urteil.harness.permitted_deviations import Permit
from urteil.harness.verify.guarantees.base import Excuse, only_where

LOST_RECORDS = (Permit.UNCLEAN_ELECTION, Permit.LOST_DISKS)
"""Permits under which a partition may lose committed records (`partitions.losses_ns`)."""

ACKS_ZERO = Excuse(
    when="violation.acks = 0 AND violation.n_reads = 0",
    reason="acks=0 promises nothing",
    permits=(Permit.ACKS_ZERO,),
)

RETRIED = Excuse(
    when="violation.idempotent = 0",
    reason="without idempotence a retry may append again",
    permits=(Permit.RETRIES,),
)

REUSED_OFFSET = Excuse(
    when="violation.acks = 1 AND violation.off >= violation.any_floor",
    reason="acks=1: truncated offsets are used again",
    permits=(Permit.ACKS_ONE,),
)


def truncation(off: str = "violation.off") -> Excuse:
    """An election after an acknowledgement with acks=1 truncates what no follower had."""
    return Excuse(
        when=f"violation.acks = 1 AND violation.n_reads = 0 AND {off} >= violation.any_floor",
        reason="acks=1: not replicated when leadership changed",
        permits=(Permit.ACKS_ONE,),
    )


def unclean_election(off: str = "violation.off") -> Excuse:
    """An unclean election loses what the new leader did not have."""
    return Excuse(
        when=f"violation.unclean_on = 1 AND {off} >= violation.unclean_floor",
        reason="an unclean election began below this offset",
        reads=("partitions.unclean_on",),
        permits=(Permit.UNCLEAN_ELECTION,),
    )


def lost_disks(off: str = "violation.off") -> Excuse:
    """Disks lost what no other in-sync replica had."""
    return Excuse(
        when=f"{off} >= violation.lost_floor",
        reason="a fault destroyed it on every replica that was in sync",
        reads=("partitions.lost_floor",),
        permits=(Permit.LOST_DISKS,),
    )


def losable(off: str = "violation.off") -> tuple[Excuse, ...]:
    """All excuses for the loss of one acknowledged record."""
    return (ACKS_ZERO, truncation(off), unclean_election(off), lost_disks(off))


def _losses(shown_ns: str) -> tuple[Excuse, ...]:
    known = f"COALESCE({shown_ns} < violation.losses_ns, TRUE)"
    return tuple(
        replace(excuse, reads=(*excuse.reads, "partitions.losses_ns"))
        for excuse in only_where(known, (unclean_election(), lost_disks()))
    )


LOSSES = _losses("violation.at_ns")
"""Losses by an unclean election or a disk: the record was known (`at_ns`) before all replicas knew
of the loss (`losses_ns`)."""

LOSSES_SHOWN = _losses("violation.known_ns")
"""The same if `at_ns` is the time at which the loss was observed, and `known_ns` the time of the
record."""
