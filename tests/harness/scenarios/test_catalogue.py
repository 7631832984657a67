"""Every scenario of the catalogue can be played and has a description."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from urteil.chaos.schedule import plan_schedule
from urteil.harness.scenario import Scenario
from urteil.harness.scenarios import SCENARIOS

ALL = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))


@ALL
def test_faults_of_every_scenario_can_be_planned(scenario: Scenario) -> None:
    topic = scenario.workload.topics[0].name
    for seed in range(5):
        assert len(plan_schedule(scenario.faults, seed=seed, topic=topic)) == len(scenario.faults)


@ALL
def test_every_scenario_survives_json(scenario: Scenario) -> None:
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario


@ALL
def test_every_scenario_has_traffic_before_and_after_faults(scenario: Scenario) -> None:
    for fault in scenario.faults:
        assert fault.at_s is not None
        assert fault.at_s >= 3
        assert fault.at_s + fault.duration_s <= scenario.duration_s - 2


@ALL
def test_every_scenario_has_a_description(scenario: Scenario) -> None:
    assert scenario.about
    assert scenario.guarantees


def test_demo_equals_the_readme() -> None:
    demo = SCENARIOS["demo"]
    assert (demo.cluster.brokers, demo.cluster.zookeepers) == (3, 1)
    assert [fault.fault for fault in demo.faults] == ["latency", "crash", "partition"]


def test_late_registration_delays_the_broker_whose_session_ends() -> None:
    """Each fault has a choice of its own: files of schedules require that."""
    delayed, ended = SCENARIOS["late-registration"].faults
    for brokers in (["b1", "b2"], ["b1", "b3"], ["b2", "b3"]):
        assert Random(delayed.choice).choice(brokers) == Random(ended.choice).choice(brokers)
