"""Reductions of a schedule: fewer faults, shorter faults, less load."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from urteil.chaos.random_schedule import TAIL_S
from urteil.harness.schedule import Entry, Schedule

LEAST_FAULT_S = 0.5
LEAST_RATE = 20.0
_replace = msgspec.structs.replace


def keep_faults(schedule: Schedule, places: Collection[int]) -> Schedule:
    """The schedule with the faults at the places `kept` only, without the gaps of the others.

    Overlapping faults keep their distances. A group of them keeps its pause after the group before
    it in the full schedule; the first group keeps at least the load before any fault. Faults
    anchored to acknowledgements keep their moments.
    """
    faults = schedule.faults
    moved: dict[int, Entry] = {}
    clock_s = 0.0
    end_s = 0.0
    calm_s: float | None = None
    for group in _groups(schedule):
        begin_s = min(_begin_s(faults[n]) for n in group)
        calm_s = begin_s if calm_s is None else calm_s
        lead_s = begin_s - end_s if moved else max(begin_s - end_s, calm_s)
        end_s = max(end_s, max(_latest_end_s(faults[n]) for n in group))
        kept_places = [n for n in group if n in places]
        if not kept_places:
            continue
        first_s = min(_begin_s(faults[n]) for n in kept_places)
        shift_s = clock_s + lead_s - first_s
        for n in kept_places:
            at_s = round(_begin_s(faults[n]) + shift_s, 3)
            moved[n] = _replace(faults[n], at_s=at_s, played=None)
        clock_s = max(_latest_end_s(moved[n]) for n in kept_places)
    entries = [
        moved.get(n) or _replace(fault, played=None)
        for n, fault in enumerate(faults)
        if n in places
    ]
    return trim_load(_replace(schedule, faults=tuple(entries)), schedule)


def trim_load(schedule: Schedule, before: Schedule) -> Schedule:
    """The schedule with a load that ends soon after its last fault.

    The load never grows beyond that of `before`, and keeps its length without faults. It always
    lasts until faults anchored to acknowledgements were played.
    """
    if not schedule.faults:
        return schedule
    ends = [_latest_end_s(fault) for fault in schedule.faults if fault.after_acks is None]
    needs_s = max(ends, default=0.0) + TAIL_S
    return _replace(schedule, duration_s=round(min(before.duration_s or 0.0, needs_s), 3))


def with_fault_duration(schedule: Schedule, n: int, duration_s: float) -> Schedule:
    """The schedule with another duration of its n-th fault."""
    entries = list(schedule.faults)
    entries[n] = _replace(entries[n], duration_s=round(duration_s, 3))
    return trim_load(_replace(schedule, faults=tuple(entries)), schedule)


def fault_seconds(schedule: Schedule) -> float:
    return round(sum(fault.duration_s for fault in schedule.faults), 1)


def _begin_s(entry: Entry) -> float:
    return entry.at_s or 0.0


def _latest_end_s(entry: Entry) -> float:
    """The latest possible end of a fault, including waits for events."""
    return _begin_s(entry) + (entry.within_s or 0.0) + entry.duration_s


def _groups(schedule: Schedule) -> list[list[int]]:
    """Places of overlapping faults, by time, without those anchored to acknowledgements."""
    timed = [n for n, fault in enumerate(schedule.faults) if fault.after_acks is None]
    groups: list[list[int]] = []
    end_s = -1.0
    for n in sorted(timed, key=lambda n: _begin_s(schedule.faults[n])):
        if _begin_s(schedule.faults[n]) >= end_s:
            groups.append([])
        groups[-1].append(n)
        end_s = max(end_s, _latest_end_s(schedule.faults[n]))
    return groups
