"""What a seed draws: the same always, never more at once than asked, no promise made void."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.faults.fault import Fault
from urteil.chaos.random_schedule import ANCHORS, TAIL_S, draw
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


def drawn(asked: RandomSchedule, seed: int = 1, **more: Any) -> list[PlannedFault]:
    given = {"load_s": 30.0, "rate_records_per_s": 100.0, "topic": "t"} | more
    return draw(asked, seed=seed, **given)


@given(asked=draws, seed=st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_the_same_seed_draws_the_same(asked: RandomSchedule, seed: int) -> None:
    assert drawn(asked, seed) == drawn(asked, seed)


@given(asked=draws, seed=st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_what_is_drawn_is_what_was_asked_for(asked: RandomSchedule, seed: int) -> None:
    found = drawn(asked, seed)
    by_name = {one.fault: one for one in asked.choices}
    if asked.count is not None:
        assert len(found) == asked.count
    for one in found:
        choice = by_name[one.fault]
        low, high = choice.duration_s or asked.duration_s
        assert low - 0.001 <= one.duration_s <= high + 0.001
        assert one.arguments.target in choice.targets
        assert set(one.arguments.options) == set(choice.options)
    assert len({one.arguments.seed for one in found}) == len(found)


@given(asked=draws, seed=st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_never_more_at_once_than_asked(asked: RandomSchedule, seed: int) -> None:
    timed = [one for one in drawn(asked, seed) if one.after_acks is None and not one.after_event]
    for one in timed:
        meanwhile = [
            other
            for other in timed
            if other.at_s <= one.at_s + 1e-6 < other.at_s + other.duration_s - 0.002
        ]
        assert len(meanwhile) <= asked.at_once


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_without_a_count_the_load_is_filled_and_its_end_left_calm(seed: int) -> None:
    found = drawn(RandomSchedule(choices=(KILL, CUT)), seed, load_s=60.0)
    assert len(found) >= 4
    assert max(one.at_s + one.duration_s for one in found) <= 60 - TAIL_S + 0.001


def test_what_must_act_alone_is_drawn_so() -> None:
    asked = RandomSchedule(choices=(ALL, CUT), count=8, at_once=3)
    for seed in range(30):
        found = drawn(asked, seed)
        for one in found:
            meanwhile = [
                other
                for other in found
                if other.at_s < one.at_s + one.duration_s
                and one.at_s < other.at_s + other.duration_s
            ]
            assert not one.alone or meanwhile == [one]


def test_seeds_differ_and_weights_count() -> None:
    asked = RandomSchedule(choices=(KILL, CUT), count=3)
    assert len({str(drawn(asked, seed)) for seed in range(50)}) == 50
    faults = [one.fault for seed in range(300) for one in drawn(asked, seed)]
    assert 0.6 < faults.count("crash") / len(faults) < 0.73


def test_an_event_is_waited_for_where_something_brings_it_about() -> None:
    asked = RandomSchedule(choices=(KILL, CUT), count=6, at_once=2, anchors={"election": 1.0})
    found = [one for seed in range(30) for one in drawn(asked, seed)]
    tied = [one for one in found if one.after_event]
    assert tied
    assert all(one.after_event == "election" and one.within_s for one in tied)
    alone = RandomSchedule(choices=(KILL, CUT), count=6, at_once=1, anchors={"election": 1.0})
    assert not [one for seed in range(30) for one in drawn(alone, seed) if one.after_event]


class Meteor(Fault):
    """Nothing is left of `all`."""

    name = "meteor"
    about = "for tests"

    def voided_promises(self) -> frozenset[str]:
        return frozenset({"durability"} if self.arguments.target == "all" else ())


def test_what_voids_a_promise_is_drawn_only_where_the_scenario_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FAULTS, "meteor", Meteor)
    everywhere = WeightedFault(fault="meteor", targets=("random", "all"))
    asked = RandomSchedule(choices=(everywhere, KILL), count=9)
    assert {one.fault for seed in range(30) for one in drawn(asked, seed)} == {"crash"}
    said = RandomSchedule(choices=(everywhere, KILL), count=9, voids=("durability",))
    assert {one.fault for one in drawn(said)} == {"crash", "meteor"}
    with pytest.raises(ValueError, match="nothing can be drawn"):
        drawn(RandomSchedule(choices=(everywhere,)))


def test_what_needs_containers_is_drawn_in_containers_alone() -> None:
    asked = RandomSchedule(choices=(WeightedFault(fault="unplug"), KILL), count=9)
    assert {one.fault for one in drawn(asked)} == {"crash"}
    assert {one.fault for one in drawn(asked, runtime="docker")} == {"crash", "unplug"}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (RandomSchedule(choices=(WeightedFault(fault="crsh"),)), "did you mean crash"),
        (
            RandomSchedule(choices=(WeightedFault(fault="crash", options={"foo": 1}),)),
            "takes no option foo",
        ),
        (RandomSchedule(choices=(WeightedFault(fault="crash", weight=0),)), "weight above 0"),
        (RandomSchedule(choices=(KILL,), pause_s=(3, 1)), "no span"),
        (RandomSchedule(choices=(KILL,), at_once=0), "at least 1"),
        (RandomSchedule(choices=(KILL,), anchors={"moon": 1}), "not moon"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused(asked: RandomSchedule, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        drawn(asked)


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
def test_faults_say_what_they_void(fault: str, target: str, voids: set[str]) -> None:
    assert FAULTS[fault](FaultArguments(target=target, topic="t")).voided_promises() == voids
