"""A schedule follows from the wishes and the seed alone."""

from __future__ import annotations

import pytest

from urteil.chaos.schedule import SHIFT_S, plan
from urteil.harness.scenario import FaultSpec

CUT = FaultSpec(fault="partition", target="followers->leader", at_s=8, duration_s=4)
KILL = FaultSpec(fault="crash", target="leader", at_s=10, duration_s=6)
LATER = FaultSpec(fault="pause", target="random", at_s=20, duration_s=2)


def test_the_same_seed_gives_the_same_schedule_and_another_another() -> None:
    faults = (LATER, KILL, CUT)
    assert plan(faults, seed=3, topic="t") == plan(faults, seed=3, topic="t")
    moments = {tuple(p.at_s for p in plan(faults, seed=s, topic="t")) for s in range(20)}
    assert len(moments) == 20


def test_moments_stay_near_the_wish_and_overlapping_faults_keep_their_distance() -> None:
    for seed in range(50):
        cut, kill, later = plan((LATER, KILL, CUT), seed=seed, topic="t")
        assert abs(cut.at_s - 8) <= SHIFT_S
        assert kill.at_s - cut.at_s == pytest.approx(2)
        assert abs(later.at_s - 20) <= SHIFT_S


def test_options_may_name_another_partition() -> None:
    spec = FaultSpec(fault="crash", target="leader", at_s=1, options={"topic": "u", "partition": 2})
    (planned,) = plan((spec,), seed=1, topic="t")
    assert (planned.arguments.topic, planned.arguments.partition, planned.arguments.options) == (
        "u",
        2,
        {},
    )


def test_a_fault_anchored_to_acknowledgements_may_wait_a_little_longer() -> None:
    (planned,) = plan((FaultSpec(fault="crash", after_acks=500),), seed=1, topic="t")
    assert planned.after_acks == 500
    assert 0 <= planned.at_s <= SHIFT_S


def test_wrong_wishes_are_refused() -> None:
    with pytest.raises(ValueError, match="no fault named 'meteor'"):
        plan((FaultSpec(fault="meteor", at_s=1),), seed=1, topic="t")
    with pytest.raises(ValueError, match="crash has no moment"):
        plan((FaultSpec(fault="crash"),), seed=1, topic="t")
