"""A schedule depends only on the fault requests and the seed."""

from __future__ import annotations

import pytest

from urteil.chaos.schedule import SHIFT_S, plan_schedule
from urteil.harness.scenario import FaultSpec

CUT = FaultSpec(fault="partition", target="followers->leader", at_s=8, duration_s=4)
KILL = FaultSpec(fault="crash", target="leader", at_s=10, duration_s=6)
LATER = FaultSpec(fault="pause", target="random", at_s=20, duration_s=2)


def test_equal_seeds_give_equal_schedules_and_other_seeds_others() -> None:
    faults = (LATER, KILL, CUT)
    assert plan_schedule(faults, seed=3, topic="t") == plan_schedule(faults, seed=3, topic="t")
    moments = {tuple(p.at_s for p in plan_schedule(faults, seed=s, topic="t")) for s in range(20)}
    assert len(moments) == 20


def test_moments_shift_little_and_overlapping_faults_keep_their_distance() -> None:
    for seed in range(50):
        cut, kill, later = plan_schedule((LATER, KILL, CUT), seed=seed, topic="t")
        assert abs(cut.at_s - 8) <= SHIFT_S
        assert kill.at_s - cut.at_s == pytest.approx(2)
        assert abs(later.at_s - 20) <= SHIFT_S


def test_partition_option_selects_another_partition() -> None:
    spec = FaultSpec(fault="crash", target="leader", at_s=1, options={"topic": "u", "partition": 2})
    (planned,) = plan_schedule((spec,), seed=1, topic="t")
    assert (planned.arguments.topic, planned.arguments.partition, planned.arguments.options) == (
        "u",
        2,
        {},
    )


def test_moment_after_acknowledgements_shifts_too() -> None:
    (planned,) = plan_schedule((FaultSpec(fault="crash", after_acks=500),), seed=1, topic="t")
    assert planned.after_acks == 500
    assert 0 <= planned.at_s <= SHIFT_S


def test_invalid_fault_requests_are_rejected() -> None:
    with pytest.raises(ValueError, match="no fault named 'meteor'"):
        plan_schedule((FaultSpec(fault="meteor", at_s=1),), seed=1, topic="t")
    with pytest.raises(ValueError, match="crash has no moment"):
        plan_schedule((FaultSpec(fault="crash"),), seed=1, topic="t")
