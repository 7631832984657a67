"""Reduced schedules keep the overlap of faults."""

from __future__ import annotations

import msgspec

from tests.harness.hunt.shrinking.oracle import schedule
from urteil.harness.hunt.shrinking.schedule_reduction import keep_faults, with_fault_duration
from urteil.harness.schedule import Entry, Schedule

MIXED = Schedule(
    duration_s=60.0,
    faults=(
        Entry(fault="latency", at_s=5.0, duration_s=4.0, choice="a"),
        Entry(fault="partition", at_s=14.0, duration_s=6.0, choice="b"),
        Entry(fault="crash", at_s=16.0, duration_s=8.0, choice="c"),
        Entry(fault="pause", at_s=30.0, duration_s=5.0, choice="d"),
        Entry(fault="pause", after_acks=900, duration_s=5.0, choice="e"),
    ),
)


def test_keeping_all_faults_changes_nothing() -> None:
    complete = schedule(4)
    assert keep_faults(complete, range(4)).faults == complete.faults


def test_gaps_are_closed_and_overlapping_faults_keep_their_distance() -> None:
    reduced = keep_faults(MIXED, (1, 2, 3))
    cut, kill, pause = reduced.faults
    assert cut.at_s == 5.0
    assert kill.at_s == 7.0
    assert pause.at_s == 15.0 + 6.0
    assert reduced.duration_s == 21.0 + 5.0 + 4.0


def test_kept_fault_begins_with_its_group() -> None:
    (kill,) = keep_faults(MIXED, (2,)).faults
    assert kill.at_s == 5.0


def test_faults_after_acknowledgements_stay() -> None:
    reduced = keep_faults(MIXED, (3, 4))
    assert reduced.faults[1] == MIXED.faults[4]
    assert reduced.duration_s == 6.0 + 5.0 + 4.0


def test_a_shorter_fault_makes_a_shorter_load() -> None:
    reduced = keep_faults(schedule(2), (0,))
    short = with_fault_duration(reduced, 0, 3.0)
    assert short.faults[0].duration_s == 3.0
    assert (reduced.duration_s, short.duration_s) == (15.0, 12.0)


def test_without_faults_the_load_stays() -> None:
    assert msgspec.structs.replace(keep_faults(MIXED, ()), faults=MIXED.faults) == MIXED
