"""Scenarios and mutants in containers, whatever `--urteil-runtime` says."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result, Status, Verdict
from urteil.suites.conftest import Play, known
from urteil.suites.mutants import MUTANTS
from urteil.suites.verdicts import assert_holds, guarantee, told


@pytest.mark.parametrize("scenario", ["demo", "restart-storm", "unplug-leader", "starved-leader"])
def test_replicas_agree_and_nothing_is_lost(play: Play, scenario: str) -> None:
    result = known(play(scenario, runtime="docker"))
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize(
    "name", ["ack_before_replication", "dedup_state_lost_on_restart", "elect_any_replica"]
)
def test_a_mutant_is_caught(play: Play, name: str) -> None:
    mutant = MUTANTS[name]
    result: Result = known(
        play(mutant.scenario, mutant=mutant.name, target="urteil", runtime="docker")
    )
    assert result.verdict is Verdict.FAIL, told(result)
    assert guarantee(result, mutant.guarantee).status is Status.VIOLATED, told(result)
