"""Smaller schedules: fewer faults, shorter ones, less load."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from urteil.chaos.random_schedule import TAIL_S
from urteil.harness.schedule import Entry, Schedule

LEAST_FAULT_S = 0.5
LEAST_RATE = 20.0
_replace = msgspec.structs.replace


def only(schedule: Schedule, kept: Collection[int]) -> Schedule:
    """The schedule with those of its faults alone, by their places, and the gaps closed.

    Faults that overlap keep their distances; a group of them keeps its pause to what went before
    it in the whole schedule, the first one at least the load that was there before any fault.
    Faults tied to acknowledgements stay where they are.
    """
    faults = schedule.faults
    moved: dict[int, Entry] = {}
    clock_s = 0.0
    end_s = 0.0
    calm_s: float | None = None
    for group in _groups(schedule):
        begin_s = min(_at(faults[n]) for n in group)
        calm_s = begin_s if calm_s is None else calm_s
        lead_s = begin_s - end_s if moved else max(begin_s - end_s, calm_s)
        end_s = max(end_s, max(_ends(faults[n]) for n in group))
        mine = [n for n in group if n in kept]
        if not mine:
            continue
        first_s = min(_at(faults[n]) for n in mine)
        shift_s = clock_s + lead_s - first_s
        for n in mine:
            at_s = round(_at(faults[n]) + shift_s, 3)
            moved[n] = _replace(faults[n], at_s=at_s, played=None)
        clock_s = max(_ends(moved[n]) for n in mine)
    entries = [
        moved.get(n) or _replace(one, played=None) for n, one in enumerate(faults) if n in kept
    ]
    return trimmed(_replace(schedule, faults=tuple(entries)), schedule)


def trimmed(schedule: Schedule, before: Schedule) -> Schedule:
    """Load ends soon after the last fault, never later than `before`; without any it stays. It
    lasts in any case until faults that wait for acknowledgements were played."""
    if not schedule.faults:
        return schedule
    ends = [_ends(one) for one in schedule.faults if one.after_acks is None]
    needs_s = max(ends, default=0.0) + TAIL_S
    return _replace(schedule, duration_s=round(min(before.duration_s or 0.0, needs_s), 3))


def lasting(schedule: Schedule, n: int, duration_s: float) -> Schedule:
    """The schedule with its n-th fault of that length."""
    entries = list(schedule.faults)
    entries[n] = _replace(entries[n], duration_s=round(duration_s, 3))
    return trimmed(_replace(schedule, faults=tuple(entries)), schedule)


def fault_seconds(schedule: Schedule) -> float:
    return round(sum(one.duration_s for one in schedule.faults), 1)


def _at(one: Entry) -> float:
    return one.at_s or 0.0


def _ends(one: Entry) -> float:
    """When it is over at the latest, events waited for."""
    return _at(one) + (one.within_s or 0.0) + one.duration_s


def _groups(schedule: Schedule) -> list[list[int]]:
    """Places of faults by time that overlap, those tied to acknowledgements left out."""
    timed = [n for n, one in enumerate(schedule.faults) if one.after_acks is None]
    groups: list[list[int]] = []
    end_s = -1.0
    for n in sorted(timed, key=lambda n: _at(schedule.faults[n])):
        if _at(schedule.faults[n]) >= end_s:
            groups.append([])
        groups[-1].append(n)
        end_s = max(end_s, _ends(schedule.faults[n]))
    return groups
