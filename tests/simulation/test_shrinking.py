"""The smallest run that still shows a finding, and schedules that are played again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from urteil.suites.mutants import MUTANTS, patching
from urteil.suites.simulation import shrinking
from urteil.suites.simulation.checks import CheckError, Finding
from urteil.suites.simulation.mixes import GROUPS, REPLICATION, Scale
from urteil.suites.simulation.mutation import Count
from urteil.suites.simulation.scenario import Run, simulate
from urteil.suites.simulation.schedule import Fault
from urteil.suites.simulation.shrinking import (
    BadSchedule,
    Case,
    ChecksFailed,
    NothingToShrink,
    Shrinking,
    shrink,
)

FAULTS = tuple(
    Fault(float(n), name, n)
    for n, name in enumerate(("crash", "power cut", "lost answer", "blackout", "slow links") * 4)
)
CASE = Case(1, REPLICATION, Scale(faults_s=40.0), FAULTS, "lost_write")


def oracle(case: Case) -> Run:
    """Shows a loss if the first power cut is played, `p1` sends for 8 s, and 2 partitions are
    there."""
    scale = case.scale
    is_shown = (
        FAULTS[1] in case.faults
        and "p1" not in scale.without
        and scale.faults_s >= 8.0
        and scale.partitions >= 2
    )
    findings = [Finding("lost_write", "v1")] if is_shown else []
    return Run(case.seed, case.mix, scale, [Finding("hole", "t-0"), *findings])


def test_everything_that_the_finding_does_not_need_is_removed() -> None:
    tried = Shrinking(CASE, oracle, ["p0", "p1", "p2"])
    smallest = tried.run()
    assert smallest.faults == (FAULTS[1],)
    assert (smallest.scale.faults_s, smallest.scale.partitions) == (10.0, 2)
    assert smallest.scale.without == ("p0", "p2")
    assert tried.tries < 30


def test_schedule_that_does_not_show_the_finding_is_rejected() -> None:
    with pytest.raises(NothingToShrink, match="do not show lost_write"):
        Shrinking(replace(CASE, faults=FAULTS[2:]), oracle, ["p0"]).run()


def test_seed_whose_check_fails_has_nothing_to_shrink_and_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(1, REPLICATION, CASE.scale, errors=[CheckError("hole", "KeyError: 1")])
    monkeypatch.setattr(shrinking, "simulate", lambda *_, **__: run)
    with pytest.raises(ChecksFailed, match="the lab failed in hole: KeyError: 1"):
        shrink(1, REPLICATION, None, None)


def test_written_schedule_is_read_back(tmp_path: Path) -> None:
    case = replace(CASE, scale=replace(CASE.scale, without=("p0",)), mutant="elect_any_replica")
    case.write(tmp_path / "s.json")
    assert Case.read(tmp_path / "s.json") == case


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mix": "nothing"}, "named nothing"),
        ({"faults": [{"at_s": 1.0, "name": "flood", "seed": 1}]}, "flood"),
        ({"faults": [{"name": "crash"}]}, "no schedule of a simulation"),
        ({"scale": {}}, "no schedule of a simulation"),
        ({"more": 1}, "no schedule of a simulation"),
    ],
)
def test_invalid_schedule_is_rejected(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    CASE.write(tmp_path / "s.json")
    given = json.loads((tmp_path / "s.json").read_text())
    (tmp_path / "s.json").write_text(json.dumps(given | change))
    with pytest.raises(BadSchedule, match=message):
        Case.read(tmp_path / "s.json")


def test_file_that_is_no_json_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("[fault]")
    with pytest.raises(BadSchedule, match="no schedule of a simulation"):
        Case.read(tmp_path / "s.json")


@pytest.mark.thorough
def test_faults_of_a_run_are_played_again() -> None:
    short = Scale(sends=100, faults_s=10.0)
    run = simulate(3, short)
    case = Case(3, REPLICATION, short, tuple(run.faults))
    again, once_more = case.play(), case.play()
    assert [fault.name for fault in again.faults] == [fault.name for fault in run.faults]
    assert (again.trace, again.events) == (once_more.trace, once_more.events)


@pytest.mark.thorough
def test_finding_of_a_mutant_is_shrunk_and_repeats(tmp_path: Path) -> None:
    name = "failed_commit_is_success"
    MUTANTS[name].apply(Count())
    try:
        shrunk = shrink(1, GROUPS, "commit_went_back", name)
        shrunk.case.write(tmp_path / "s.json")
        again = Case.read(tmp_path / "s.json").play()
    finally:
        patching.undo()
    assert "commit_went_back" in again.guarantees()
    assert len(shrunk.case.faults) < shrunk.faults_before
