"""What a group's coordinator owes its members, judged by their heartbeats and by the drill.

The lab judges the same promises with margins for a busy host (`harness/verify/derived`): here every
heartbeat and its answer are known, and sessions are as long as the members asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from urteil.broker.wire.errors import ErrorCode
from urteil.suites.simulation.coordinators import Coordinators
from urteil.suites.simulation.evidence import Evidence
from urteil.suites.simulation.groups import SESSION_MS
from urteil.suites.simulation.history import Beat

_SESSION_S = SESSION_MS / 1000
_UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID.name


def member_expelled(evidence: Evidence) -> Iterator[str]:
    """A dynamic member whose heartbeat was accepted is known for its session's timeout, and to a
    new coordinator for as long from its takeover on."""
    coordinators = Coordinators(evidence)
    beats_of: dict[tuple[str, str], list[Beat]] = defaultdict(list)
    for beat in evidence.history.beats:
        if beat.client not in evidence.history.instances:
            beats_of[beat.client, beat.member_id].append(beat)
    for (client, _), beats in beats_of.items():
        for before, beat in pairwise(beats):
            if before.error != ErrorCode.NONE.name or beat.error != _UNKNOWN:
                continue
            former, _ = coordinators.at(before.complete_s)
            leader, since_s = coordinators.at(beat.complete_s)
            has_changed = coordinators.changed(before.invoke_s, before.complete_s)
            if before.node != former or beat.node != leader or has_changed:
                continue
            known_s = max(before.invoke_s, since_s)
            if since_s - before.invoke_s >= _SESSION_S:
                continue  # the former coordinator may have expelled it
            if beat.complete_s - known_s < _SESSION_S:
                yield (
                    f"{client} was expelled at {beat.complete_s:.3f} s by broker {leader}, "
                    f"{beat.complete_s - known_s:.1f} s after it was known there"
                )


def departed_member_kept(evidence: Evidence) -> Iterator[str]:
    """Others have the partitions of a member that left or died in time."""
    coordinators = Coordinators(evidence)
    for departure in evidence.history.departures:
        if coordinators.changed(departure.at_s - _SESSION_S, departure.limit_s):
            continue
        taken = {
            row.partition
            for row in evidence.history.assignments
            if row.event == "assigned"
            and row.client != departure.client
            and departure.at_s < row.at_s <= departure.limit_s
        }
        for partition in sorted({*departure.partitions} - taken):
            yield (
                f"{departure.client} {'died' if departure.has_died else 'left'} at "
                f"{departure.at_s:.3f} s, and nobody had its partition {partition} at "
                f"{departure.limit_s:.3f} s"
            )


def static_member_rebalanced(evidence: Evidence) -> Iterator[str]:
    """A static member that returns within its session is in the generation in which it died."""
    coordinators = Coordinators(evidence)
    for back in evidence.history.returns:
        if back.after > back.before and not coordinators.changed(back.died_s, back.back_s):
            yield (
                f"{back.client} returned {back.back_s - back.died_s:.1f} s after its death, in "
                f"generation {back.after} after {back.before}"
            )
