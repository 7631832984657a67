"""What counts as found, and the table of rooms and survivors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.hunt.rows import row
from urteil.cli.main import exit_code
from urteil.harness.hunt.job import Job, Row
from urteil.harness.hunt.ledger import Lines
from urteil.harness.hunt.sensitivity import (
    CRASH,
    EQUIVALENT,
    FOUND,
    SURVIVED,
    Trial,
    choose_scenarios,
    load_equivalent,
    sensitivity_of,
    text_of,
    try_in_scenario,
    try_in_simulation,
)
from urteil.harness.hunt.simulation import (
    CheckError,
    NoSimulation,
    SimulatedRun,
    Simulation,
    simulate,
)

BUG = Path("bug.json")


def trial(name: str = "log-1", **more: Any) -> Trial:
    given = {"room": "log", "slip": "bound", "file": "broker/log/log.py", "function": "Log.append"}
    return Trial(name=name, diff="-    a < b\n+    a <= b", **{**given, **more})


def played(*runs: SimulatedRun, code: int | None = 0, output: str = "") -> Any:
    """A simulation with these results."""
    done = Simulation(runs=list(runs), exit_code=code, output=output, seconds=1.0)
    return lambda *_, **__: done


def run(seed: int, *guarantees: str, ran: bool = True) -> SimulatedRun:
    findings = dict.fromkeys(guarantees, "a sentence")
    return SimulatedRun(seed=seed, findings=findings, seconds=2.0, bug_ran=ran)


def test_finding_in_the_simulation_is_found() -> None:
    play = played(run(1), run(2, "lost_write", "hole"))
    done = try_in_simulation(trial(), BUG, (1, 2, 3), play=play)
    assert (done.outcome, done.by, done.where) == (FOUND, "hole, lost_write", "simulation, seed 2")
    assert (done.seconds, done.ran) == (4.0, True)


def test_seeds_without_a_finding_are_survived() -> None:
    done = try_in_simulation(trial(), BUG, (1, 2), play=played(run(1, ran=False), run(2)))
    assert (done.outcome, done.ran) == (SURVIVED, True)
    assert done.tried == ["simulation, seed 1", "simulation, seed 2"]


def test_check_that_fails_finds_nothing_and_is_shown() -> None:
    error = CheckError(mix="groups", check="hole", error="KeyError: 1")
    unjudged = SimulatedRun(seed=1, errors=[error], seconds=1.0)
    done = try_in_simulation(trial(), BUG, (1,), play=played(unjudged))
    shown = "simulation, seed 1: the lab failed in hole, mix groups: KeyError: 1"
    assert (done.outcome, done.errors) == (SURVIVED, [shown])
    assert f"* log-1: {shown}" in text_of(sensitivity_of(1, [done], {}))


@pytest.mark.parametrize(
    ("code", "output", "by"),
    [
        (1, "Traceback\nNameError: name 'x'", "NameError: name 'x'"),
        (None, "", "does not end"),
        (-24, "", "does not end"),
        (-11, "", "exit code -11"),
    ],
)
def test_broker_that_ends_or_never_ends_is_found_by_crash(
    code: int | None, output: str, by: str
) -> None:
    play = played(run(1), code=code, output=output)
    done = try_in_simulation(trial(), BUG, (1, 2), play=play)
    assert (done.outcome, done.by, done.where) == (CRASH, by, "simulation, seed 2")


def test_scenario_finds_what_its_twin_does_not_show() -> None:
    def play(job: Job) -> Row:
        if job.mutant is None:
            return row(seed=job.seed, verdict="PASS")
        return row(seed=job.seed, verdict="FAIL", mutant=job.mutant, violated={"hole": 1}, ran=True)

    done = try_in_scenario(trial(), BUG, "crash", 4, play=play)
    assert (done.outcome, done.by, done.where) == (FOUND, "hole", "crash, seed 4")


@pytest.mark.parametrize(
    ("verdict", "twin"), [("PASS", "PASS"), ("FAIL", "FAIL"), ("UNKNOWN", "PASS")]
)
def test_other_runs_of_a_scenario_find_nothing(verdict: str, twin: str) -> None:
    def play(job: Job) -> Row:
        is_twin = job.mutant is None
        violated = {"hole": 1} if not is_twin and verdict == "FAIL" else {}
        return row(seed=job.seed, verdict=twin if is_twin else verdict, violated=violated)

    done = try_in_scenario(trial(), BUG, "crash", 4, play=play)
    assert (done.outcome, done.tried) == (SURVIVED, [f"crash, seed 4: {verdict}"])


def test_scenarios_of_a_line_are_chosen_by_share_of_file() -> None:
    by_line = {1: ["a", "b", "simulation"], 2: ["b"], 3: ["c"]}
    assert choose_scenarios(by_line, 1, 3, without="simulation") == ["b", "a"]
    assert choose_scenarios(by_line, 1, 1, without="simulation") == ["b"]
    assert choose_scenarios(by_line, 9, 3, without="simulation") == []


def test_rooms_are_counted_without_equivalent_bugs() -> None:
    trials = [
        trial("log-1", outcome=FOUND, by="hole"),
        trial("log-2", outcome=CRASH, by="does not end"),
        trial("log-3", ran=True),
        trial("log-4"),
        trial("api-1", room="api", ran=True),
    ]
    results = sensitivity_of(7, trials, {"log-3": "a cache", "log-1": "no"})
    log, api, every = results.rooms
    assert (log.drawn, log.equivalent, log.judged, log.found, log.crashed) == (4, 1, 3, 1, 1)
    assert (log.survived, log.unreached, api.sensitivity, every.judged) == (1, 1, 0.0, 4)
    assert log.sensitivity == pytest.approx(2 / 3)
    assert log.at_least == pytest.approx(0.1354, abs=0.001)
    assert [t.outcome for t in results.trials][:3] == [FOUND, CRASH, EQUIVALENT]
    text = text_of(results)
    assert (
        "| log  | 4     | 1          | 1     | 1        | 1        | 1              | 67%" in text
    )
    assert "its line never ran; not played" in text
    assert "a cache" in text


def test_ledger_continues_after_a_cut_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Lines(path, Trial).add(trial("log-1"))
    path.write_bytes(path.read_bytes() + msgspec.json.encode(trial("log-2"))[:20])
    ledger = Lines(path, Trial)
    ledger.add(trial("log-3"))
    assert [t.name for t in Lines(path, Trial).rows] == ["log-1", "log-3"]


@pytest.mark.parametrize("text", ["log-1 = 3", 'log-1 = " "', "log-1"])
def test_equivalent_bugs_need_a_reason(text: str, tmp_path: Path) -> None:
    (tmp_path / "equivalent.toml").write_text(text)
    with pytest.raises(ValueError, match=r"equivalent\.toml"):
        load_equivalent(tmp_path / "equivalent.toml")


def test_bug_of_other_source_is_not_played(tmp_path: Path) -> None:
    bug = '{"name": 1}'
    (tmp_path / "bug.json").write_text(bug)
    with pytest.raises(NoSimulation, match="is not a drawn bug"):
        simulate([1], limit_s=600, bug=tmp_path / "bug.json")


def test_reasons_of_the_project_are_complete() -> None:
    from urteil.suites import drawn_bugs

    load_equivalent(Path(drawn_bugs.__path__[0]) / "equivalent.toml")


def test_unknown_room_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sensitivity", "--room", "wire", "--out", str(tmp_path)]) == 254
    assert "--room wire: known are log, replication" in capsys.readouterr().err
