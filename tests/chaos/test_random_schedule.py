"""Random schedules: repeatable, within `at_once`, without voided promises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.faults.base.fault import Fault
from urteil.chaos.random_schedule import ANCHORS, TAIL_S, draw_schedule
from urteil.chaos.schedule import PlannedFault
from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault

KILL = WeightedFault(fault="crash", targets=("leader", "random"), weight=2, brings=("election",))
CUT = WeightedFault(
    fault="partition", targets=("follower->leader",), options={"close": (False, True)}
)
ALL = WeightedFault(fault="crash", targets=("all",), alone=True)
SLOW = WeightedFault(
    fault="latency", targets=("all",), duration_s=(1, 2), options={"latency_ms": 90.0}
)

draws = st.builds(
    RandomSchedule,
    choices=st.lists(st.sampled_from([KILL, CUT, SLOW]), min_size=1, unique_by=id).map(tuple),
    count=st.none() | st.integers(1, 12),
    per_minute=st.none() | st.floats(1, 20),
    at_once=st.integers(1, 3),
    duration_s=st.tuples(st.floats(1, 3), st.floats(3, 9)),
    pause_s=st.tuples(st.floats(0, 2), st.floats(2, 5)),
    anchors=st.dictionaries(st.sampled_from(ANCHORS), st.floats(0.1, 3), min_size=1),
)


def drawn(declaration: RandomSchedule, seed: int = 1, **more: Any) -> list[PlannedFault]:
    given = {"load_s": 30.0, "rate_records_per_s": 100.0, "topic": "t"} | more
    return draw_schedule(declaration, seed=seed, **given)


@given(declaration=draws, seed=st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_equal_seeds_draw_equal_schedules(declaration: RandomSchedule, seed: int) -> None:
    assert drawn(declaration, seed) == drawn(declaration, seed)


@given(declaration=draws, seed=st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_drawn_schedule_follows_its_declaration(declaration: RandomSchedule, seed: int) -> None:
    result = drawn(declaration, seed)
    by_name = {choice.fault: choice for choice in declaration.choices}
    if declaration.count is not None:
        assert len(result) == declaration.count
    for drawn_fault in result:
        choice = by_name[drawn_fault.fault]
        low, high = choice.duration_s or declaration.duration_s
        assert low - 0.001 <= drawn_fault.duration_s <= high + 0.001
        assert drawn_fault.arguments.target in choice.targets
        assert set(drawn_fault.arguments.options) == set(choice.options)
    assert len({drawn_fault.arguments.seed for drawn_fault in result}) == len(result)


@given(declaration=draws, seed=st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_at_once_limits_active_faults(declaration: RandomSchedule, seed: int) -> None:
    timed = [
        drawn_fault
        for drawn_fault in drawn(declaration, seed)
        if drawn_fault.after_acks is None and not drawn_fault.after_event
    ]
    for earlier in timed:
        meanwhile = [
            other
            for other in timed
            if other.at_s <= earlier.at_s + 1e-6 < other.at_s + other.duration_s - 0.002
        ]
        assert len(meanwhile) <= declaration.at_once


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_schedule_without_count_fills_the_load_except_its_end(seed: int) -> None:
    result = drawn(RandomSchedule(choices=(KILL, CUT)), seed, load_s=60.0)
    assert len(result) >= 4
    assert (
        max(drawn_fault.at_s + drawn_fault.duration_s for drawn_fault in result)
        <= 60 - TAIL_S + 0.001
    )


def test_exclusive_fault_overlaps_no_other() -> None:
    declaration = RandomSchedule(choices=(ALL, CUT), count=8, at_once=3)
    for seed in range(30):
        result = drawn(declaration, seed)
        for drawn_fault in result:
            meanwhile = [
                other
                for other in result
                if other.at_s < drawn_fault.at_s + drawn_fault.duration_s
                and drawn_fault.at_s < other.at_s + other.duration_s
            ]
            assert not drawn_fault.alone or meanwhile == [drawn_fault]


def test_seeds_differ_and_weights_decide_frequencies() -> None:
    declaration = RandomSchedule(choices=(KILL, CUT), count=3)
    assert len({str(drawn(declaration, seed)) for seed in range(50)}) == 50
    faults = [drawn_fault.fault for seed in range(300) for drawn_fault in drawn(declaration, seed)]
    assert 0.6 < faults.count("crash") / len(faults) < 0.73


def test_fault_is_anchored_to_an_event_of_a_drawn_fault() -> None:
    declaration = RandomSchedule(choices=(KILL, CUT), count=6, at_once=2, anchors={"election": 1.0})
    results = [drawn_fault for seed in range(30) for drawn_fault in drawn(declaration, seed)]
    anchored = [result for result in results if result.after_event]
    assert anchored
    assert all(result.after_event == "election" and result.within_s for result in anchored)
    alone = RandomSchedule(choices=(KILL, CUT), count=6, at_once=1, anchors={"election": 1.0})
    assert not [
        drawn_fault
        for seed in range(30)
        for drawn_fault in drawn(alone, seed)
        if drawn_fault.after_event
    ]


class Meteor(Fault):
    """Voids durability if its target is `all`."""

    name = "meteor"
    about = "for tests"

    def voided_promises(self) -> frozenset[str]:
        return frozenset({"durability"} if self.arguments.target == "all" else ())


def test_fault_that_voids_a_promise_needs_permission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FAULTS, "meteor", Meteor)
    everywhere = WeightedFault(fault="meteor", targets=("random", "all"))
    declaration = RandomSchedule(choices=(everywhere, KILL), count=9)
    assert {
        drawn_fault.fault for seed in range(30) for drawn_fault in drawn(declaration, seed)
    } == {"crash"}
    permissive = RandomSchedule(choices=(everywhere, KILL), count=9, voids=("durability",))
    assert {drawn_fault.fault for drawn_fault in drawn(permissive)} == {"crash", "meteor"}
    with pytest.raises(ValueError, match="no fault can be drawn"):
        drawn(RandomSchedule(choices=(everywhere,)))


def test_container_fault_is_drawn_only_for_containers() -> None:
    declaration = RandomSchedule(choices=(WeightedFault(fault="unplug"), KILL), count=9)
    assert {drawn_fault.fault for drawn_fault in drawn(declaration)} == {"crash"}
    assert {drawn_fault.fault for drawn_fault in drawn(declaration, runtime="docker")} == {
        "crash",
        "unplug",
    }


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (RandomSchedule(choices=(WeightedFault(fault="crsh"),)), "did you mean crash"),
        (
            RandomSchedule(choices=(WeightedFault(fault="crash", options={"foo": 1}),)),
            "takes no option foo",
        ),
        (
            RandomSchedule(
                choices=(WeightedFault(fault="starve", options={"cpus": (0.1, 2, 0.2)}),)
            ),
            "cpus=2 is not between",
        ),
        (RandomSchedule(choices=(WeightedFault(fault="crash", weight=0),)), "weight above 0"),
        (RandomSchedule(choices=(KILL,), pause_s=(3, 1)), "not a range"),
        (RandomSchedule(choices=(KILL,), at_once=0), "give 1 or more"),
        (RandomSchedule(choices=(KILL,), anchors={"moon": 1}), "not moon"),
    ],
)
def test_invalid_declaration_is_rejected(declaration: RandomSchedule, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drawn(declaration)


@pytest.mark.parametrize(
    ("fault", "target", "voids"),
    [
        ("power_cut", "leader", set()),
        ("power_cut", "all", {"durability"}),
        ("disk_emptied", "follower", {"durability"}),
        ("elect_unclean", "leader", {"clean_election", "durability"}),
        ("allow_unclean", "topic", {"clean_election", "durability"}),
        ("retention", "topic", {"retention"}),
        ("crash", "all", set()),
    ],
)
def test_faults_return_voided_promises(fault: str, target: str, voids: set[str]) -> None:
    assert FAULTS[fault](FaultArguments(target=target, topic="t")).voided_promises() == voids
