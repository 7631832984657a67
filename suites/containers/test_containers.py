"""Scenarios and mutants in containers, whatever `--urteil-runtime` is."""

from __future__ import annotations

import pytest

from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.result import Result, Status, Verdict
from urteil.suites.conftest import Play, require_verdict
from urteil.suites.mutants import MUTANTS
from urteil.suites.verdicts import assert_expected, explanation, guarantee


@pytest.mark.parametrize("scenario", ["demo", "restart-storm", "unplug-leader", "starved-leader"])
def test_scenario_in_containers(play: Play, scenario: str) -> None:
    result = require_verdict(play(scenario, runtime="docker"))
    assert_expected(SCENARIOS[scenario], [result])


def test_demo_without_zookeeper_in_containers(play: Play) -> None:
    result = require_verdict(play("demo", target="kafka:4.4.0", runtime="docker"))
    assert_expected(SCENARIOS["demo"], [result])


@pytest.mark.parametrize(
    "name", ["ack_before_replication", "dedup_state_lost_on_restart", "elect_any_replica"]
)
def test_mutant_is_caught_by_its_guarantee(play: Play, name: str) -> None:
    mutant = MUTANTS[name]
    result: Result = require_verdict(
        play(mutant.scenario, mutant=mutant.name, target="urteil", runtime="docker")
    )
    assert result.verdict is Verdict.FAIL, explanation(result)
    assert guarantee(result, mutant.guarantee).status is Status.VIOLATED, explanation(result)
