"""Schedules as files: drawn or handwritten ones are played unchanged."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urteil.chaos.nemesis import Injection
from urteil.chaos.schedule import plan_schedule
from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault
from urteil.harness.scenario import FaultSpec, Scenario
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.schedule import (
    ScheduleError,
    load_schedule,
    save_schedule,
    schedule_of,
    settle_schedule,
    with_schedule,
)

CHAOS = SCENARIOS["chaos"]


def seeded(scenario: Scenario, seed: int) -> Scenario:
    return settle_schedule(msgspec.structs.replace(scenario, seed=seed))


@given(name=st.sampled_from(sorted(SCENARIOS)), seed=st.integers(0, 100_000))
@settings(max_examples=60, deadline=None)
def test_settled_schedule_is_not_changed(name: str, seed: int) -> None:
    scenario = seeded(SCENARIOS[name], seed)
    assert scenario == seeded(SCENARIOS[name], seed)
    assert settle_schedule(scenario) == scenario
    assert scenario.draw is None
    planned = plan_schedule(scenario.faults, seed=seed + 1, topic=scenario.workload.topics[0].name)
    assert [(p.fault, p.at_s, p.arguments.seed) for p in planned] == [
        (f.fault, f.at_s, f.choice) for f in scenario.faults
    ]


@given(seed=st.integers(0, 100_000))
@settings(max_examples=25, deadline=None)
def test_saved_schedule_is_read_unchanged(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("schedule") / "schedule.json"
    scenario = seeded(CHAOS, seed)
    save_schedule(path, schedule_of(scenario))
    again = with_schedule(msgspec.structs.replace(CHAOS, seed=seed), load_schedule(path, CHAOS))
    assert settle_schedule(again) == scenario


def test_saved_schedule_has_plan_and_play(tmp_path: Path) -> None:
    scenario = seeded(SCENARIOS["leader-crash"], 3)
    (planned,) = plan_schedule(scenario.faults, seed=3, topic="urteil")
    injection = Injection(
        fault="crash",
        targets=("b2",),
        begin_ns=6_500_000_000,
        healed_ns=9_000_000_000,
        acted=True,
        planned=planned,
    )
    path = tmp_path / "schedule.json"
    save_schedule(path, schedule_of(scenario, injections=[injection], began_ns=1_000_000_000))
    (entry,) = load_schedule(path, scenario).faults
    assert entry.played is not None
    assert (entry.played.begin_s, entry.played.healed_s) == (5.5, 8.0)
    assert (entry.played.targets, entry.played.acted) == (["b2"], True)


def test_handwritten_schedule_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "rate_records_per_s = 50\n"
        "[[faults]]\nfault = 'crash'\ntarget = 'leader'\nat_s = 4\nduration_s = 6\n"
        "[[faults]]\nfault = 'pause'\ntarget = 'leader'\nat_s = 4\nafter_event = 'election'\n"
    )
    played = settle_schedule(with_schedule(CHAOS, load_schedule(path, CHAOS)))
    assert [(f.fault, f.at_s, f.after_event) for f in played.faults] == [
        ("crash", 4, None),
        ("pause", 4, "election"),
    ]
    assert played.at_once == 2, "as the scenario draws"
    assert played.workload.rate_records_per_s == 50
    assert played.workload.producers == CHAOS.workload.producers


def test_named_and_drawn_faults_have_different_choices(tmp_path: Path) -> None:
    """A fault's `choice` seeds what it selects; a saved schedule keeps it."""
    named = FaultSpec(fault="crash", target="random", at_s=4)
    drawn = RandomSchedule(choices=(WeightedFault(fault="crash"),), count=2)
    both = settle_schedule(Scenario(name="both", faults=(named, named), draw=drawn))
    path = tmp_path / "schedule.json"
    save_schedule(path, schedule_of(both))
    assert len({fault.choice for fault in load_schedule(path, both).faults}) == 4


CRASH = "[[faults]]\nfault='crash'\n"
CUT = "[[faults]]\nfault='partition'\nat_s=1\n"
TOPIC = "[[faults]]\nat_s=1\nfault="
LATE = "[[faults]]\nfault='latency'\ntarget='leader'\nat_s=1\noptions="


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("faults = 3", "faults: Expected a list, got a whole number"),
        ("fautls = []", "unknown field `fautls`"),
        (
            "[[faults]]\nfault='crash'\nat_s='x'",
            "fault 1 (crash), at_s: Expected a number, got a text",
        ),
        (
            CRASH + "at_s=1\n" + CRASH + "at=3",
            "fault 2 (crash): Object contains unknown field `at`",
        ),
        ("[[faults]]\nat_s=1", "fault 1 (no fault named): Object missing required field `fault`"),
        ("[[faults]]\nfault='crsh'\nat_s=1", "fault 1 (crsh): no fault named 'crsh'; did you mean"),
        (CRASH, "crash has no moment: give at_s, after_acks or after_event"),
        (CRASH + "after_event='electoin'", "no event named 'electoin'; did you mean election"),
        (CRASH + "after_event='election'\nafter_acks=3", "two anchors"),
        (CRASH + "at_s=-1", "at_s is -1: give 0"),
        (CRASH + "at_s=1\ntarget='b4'", "'b4' is neither a role nor a node; nodes are b1, b2, b3"),
        (CRASH + "at_s=1\ntarget='leeder'", "did you mean leader?"),
        (CRASH + "at_s=1\noptions={foo=1}", "takes no option foo"),
        (CRASH + "at_s=1\ntarget='follower->leader'", "is a pair of links: give a role or a node"),
        (CRASH + "at_s=1\ntarget='leader,b1'", "a role cannot be part of the list"),
        (CUT, "'random' is not a pair: give left->right or left<->right"),
        (CUT + "target='b1->b2->b3'", "'b1->b2->b3' is not a pair"),
        (
            CUT + "target='b1->b2'\noptions={direction='both'}",
            "direction is 'both': give one-way",
        ),
        (CUT + "target='b1->b2'\noptions={close='maybe'}", "close is 'maybe': give true or false"),
        ("[[faults]]\nfault='ring'\nat_s=1", "'random' is not all"),
        (
            "[[faults]]\nfault='kill_client'\nat_s=1",
            "'random' is not a client: give producer, member",
        ),
        (LATE + "{latency_ms='x'}", "latency_ms must be a number, not x"),
        (LATE + "{latency_ms=inf}", "latency_ms must be a number, not inf"),
        (LATE + "{latency_ms=0}", "latency_ms=0 is not between 1 and 60000"),
        (LATE + "{latency_ms=100, jitter_ms=200}", "jitter_ms=200 is not between 0 and latency_ms"),
        (LATE + "{partition='x'}", "partition is 'x': give 0 or more"),
        (LATE + "{partition=-1}", "partition is -1.0: give 0 or more"),
        (
            "[[faults]]\nfault='late_command'\nat_s=1\noptions={command='x'}",
            "command is 'x': give UpdateMetadata",
        ),
        (TOPIC + "'delete_records'\noptions={share=2}", "share=2 is not between 0 and 1"),
        (TOPIC + "'add_partitions'\noptions={by=0}", "by=0 is not between 1 and 1000"),
        (TOPIC + "'topic_churn'\noptions={count=-1}", "count=-1 is not between 1 and 1000"),
        (
            "[[faults]]\nat_s=1\nfault='disk_full'\noptions={room_bytes=-1}",
            "room_bytes=-1 is below 0",
        ),
        ((CRASH + "at_s=1\nchoice='a'\n") * 2, "faults 1 and 2 have the choice 'a'"),
        ("at_once = 0", "at_once is 0: give 1 or more"),
        ("rate_records_per_s = -3", "rate_records_per_s is -3"),
        ("[faults", "is not valid TOML"),
    ],
)
def test_invalid_schedule_is_rejected_with_file_entry_and_remedy(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ScheduleError) as caught:
        load_schedule(path, CHAOS)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_unreadable_schedule_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="cannot be read"):
        load_schedule(tmp_path / "absent.json", CHAOS)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ScheduleError, match="is not text"):
        load_schedule(tmp_path / "bytes.json", CHAOS)
    for text in ('{"faults": [', "[" * 100_000, '{"seed": ' + "1" * 5_000 + "}"):
        (tmp_path / "strange.json").write_text(text)
        with pytest.raises(ScheduleError, match="is not valid JSON"):
            load_schedule(tmp_path / "strange.json", CHAOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_file_may_have_every_fault_that_a_scenario_has(tmp_path: Path, name: str) -> None:
    path = tmp_path / "schedule.json"
    scenario = settle_schedule(SCENARIOS[name])
    save_schedule(path, schedule_of(scenario))
    assert load_schedule(path, scenario).faults == schedule_of(scenario).faults


def test_schedule_entry_has_the_fields_of_a_fault() -> None:
    assert set(FaultSpec.__struct_fields__) | {"played"} == set(
        schedule_of(seeded(CHAOS, 1)).faults[0].__struct_fields__
    )
