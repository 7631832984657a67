"""A run may be longer or shorter than its scenario."""

from __future__ import annotations

from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault
from urteil.harness.scenario import FaultSpec, Scenario, with_duration

KILL = FaultSpec(fault="crash", at_s=10.0, duration_s=5.0)
COUNTED = FaultSpec(fault="pause", after_acks=100, duration_s=2.0)
BASE = Scenario(name="x", faults=(KILL, COUNTED), duration_s=20.0)


def test_same_length_keeps_the_schedule() -> None:
    assert with_duration(BASE, 20.0) == BASE


def test_a_longer_run_repeats_the_schedule() -> None:
    long = with_duration(BASE, 65.0)
    assert [fault.at_s for fault in long.faults] == [10.0, None, 30.0, 50.0]
    assert long.duration_s == 65.0


def test_a_shorter_run_shrinks_it() -> None:
    short = with_duration(BASE, 10.0)
    assert (short.faults[0].at_s, short.faults[0].duration_s) == (5.0, 2.5)
    assert short.faults[1] == COUNTED


def test_zero_load_is_allowed() -> None:
    assert with_duration(BASE, 0.0).faults[0].at_s == 0.0


def test_length_of_a_run_changes_the_number_of_drawn_faults() -> None:
    drawing = Scenario(
        name="x", draw=RandomSchedule(choices=(WeightedFault(fault="crash"),), count=4)
    )
    counts = [with_duration(drawing, 25.0 * n).draw for n in (0.1, 1, 2.5)]
    assert [count.count for count in counts if count is not None] == [1, 4, 10]
