"""Whole runs of our broker: a good one, and one whose cluster does not start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from urteil.chaos.observations import LabFailure
from urteil.harness.run import play as play_module
from urteil.harness.run import runner
from urteil.harness.run.runner import run_scenario
from urteil.harness.scenario import (
    FaultSpec,
    RunFacts,
    Scenario,
    load_facts,
    load_scenario,
    with_duration,
)
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.scenarios.common import fault
from urteil.harness.schedule import load_schedule
from urteil.harness.stack_dumps import DumpSource
from urteil.harness.verify.result import Verdict, load_result

SHORT = msgspec.structs.replace(
    with_duration(SCENARIOS["calm"], 7.0),
    name="short",
    workload=msgspec.structs.replace(SCENARIOS["calm"].workload, rate_records_per_s=60),
    faults=(
        fault("shutdown", "controller", 3, 1),
        FaultSpec(
            fault="pause", target="random", after_event="controller", at_s=2.5, duration_s=0.5
        ),
    ),
)


def play(scenario: Scenario, out: Path) -> Path:
    run_dir, result = run_scenario(scenario, out=out, engine="duckdb")
    assert load_result(run_dir) == result
    return run_dir


def test_a_run_ends_with_a_verdict(tmp_path: Path) -> None:
    run_dir = play(SHORT, tmp_path)
    result, facts = load_result(run_dir), load_facts(run_dir)
    assert result.verdict is Verdict.PASS, result.reasons
    assert [phase.name for phase in facts.phases] == ["setup", "before", "during", "after", "final"]
    stopped, pause = result.faults
    assert stopped.acted
    assert pause.acted
    assert "is stopped" in pause.proof
    check_schedule(run_dir)
    assert processes_of(tmp_path) == []


def check_schedule(run_dir: Path) -> None:
    """What was played stands in schedule.json, the second fault at the next controller's coming."""
    entries = load_schedule(run_dir / "schedule.json", load_scenario(run_dir)).faults
    played = {entry.fault: entry.played for entry in entries}
    stopped, pause = played["shutdown"], played["pause"]
    assert stopped is not None
    assert pause is not None
    assert 2 <= stopped.begin_s < pause.begin_s
    assert (stopped.acted, pause.acted) == (True, True)


def test_a_cluster_that_does_not_start_is_unknown(tmp_path: Path) -> None:
    config = {"inter.broker.listener.name": "NO_SUCH_LISTENER"}
    broken = msgspec.structs.replace(SHORT.cluster, config=config)
    result = load_result(play(msgspec.structs.replace(SHORT, cluster=broken), tmp_path))
    assert result.verdict is Verdict.UNKNOWN
    assert any("NotHealthy" in reason for reason in result.reasons)


class Interrupted:
    """A cluster whose start somebody interrupts, and whose end fails."""

    def start(self) -> float:
        raise KeyboardInterrupt

    def dump_sources(self) -> list[DumpSource]:
        return []

    def close(self) -> None:
        raise LabFailure("evidence of b1 did not come back")


def test_a_failing_end_does_not_hide_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play_module, "open_cluster", lambda *_: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        run_scenario(SHORT, out=tmp_path, engine="duckdb")
    problems = load_facts(tmp_path / "latest").problems
    assert "interrupted" in problems
    assert "LabFailure: evidence of b1 did not come back" in problems


def test_interrupted_run_leaves_no_thread_that_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text("import threading; threading.Event().wait(0.5)")
    monkeypatch.syspath_prepend(tmp_path)

    def interrupted(
        scenario: Scenario, run_dir: Path, facts: RunFacts, on_load: Callable[[], None], log: Any
    ) -> None:
        on_load()
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_scenario(SHORT, out=tmp_path, engine="duckdb", preload=["slow_to_import"])
    assert "preload" not in [thread.name for thread in threading.enumerate()]


class Hanging(Interrupted):
    """A cluster whose start never ends."""

    def start(self) -> float:
        threading.Event().wait()
        raise AssertionError


def test_hanging_run_is_ended_with_stack_dumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play_module, "open_cluster", lambda *_: Hanging())
    monkeypatch.setattr(play_module.Play, "_limit_s", lambda _: 0.5)
    result = load_result(play(SHORT, tmp_path))
    assert result.verdict is Verdict.UNKNOWN
    assert any("the run hung" in reason for reason in result.reasons)
    lab = (tmp_path / "latest" / "stacks" / "lab.txt").read_text()
    assert lab.startswith("the run hung\n")
    assert "test_runner.py" in lab


def processes_of(out: Path) -> list[str]:
    """Command lines of processes that belong to runs in `out`, this one's own apart."""
    processes = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(str(out) in word for word in words) and process.pid != psutil.Process().pid:
            processes.append(" ".join(words))
    return processes
