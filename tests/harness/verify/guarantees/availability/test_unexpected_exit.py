"""Brokers that exit by themselves are found, unless something outside may have stopped them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import alone, healthy
from urteil.chaos.observations import Ended, NodeState, NodeStatus
from urteil.harness.evidence.broker_lives import write_lives
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import CRASH_NS, END_NS, RUN, S

LIVES = [NodeStatus(node=f"b{n}", state=NodeState.RUNNING, pid=n, starts=n) for n in (1, 2, 3)]


def _judged(
    run_dir: Path, *ended: Ended, fault_on: str = "b1", closed: tuple[str, ...] = ()
) -> GuaranteeResult:
    """The run in which these ended or closed, with one fault from CRASH_NS on."""
    write_lives(run_dir, RUN, END_NS, LIVES, ended, closed)
    tables = healthy()
    tables["faults"][0]["targets"] = f'["{fault_on}"]'
    tables["samples"] = []
    return alone("unexpected_exit", run_dir, tables)


def _end(code: int, *, node: str = "b1", starting: bool = False, at_ns: int = END_NS) -> Ended:
    return Ended(node=node, starts=2, at_ns=at_ns, exit_code=code, starting=starting)


def test_brokers_that_live_are_counted_by_their_lives(tmp_path: Path) -> None:
    result = _judged(tmp_path)
    assert (result.status, result.opportunities) == (Status.HOLDS, 1 + 2 + 3)


@pytest.mark.parametrize("code", [1, -6, -11, 134])
def test_unexpected_broker_exit_is_found(code: int, tmp_path: Path) -> None:
    (finding,) = _judged(tmp_path, _end(code, at_ns=CRASH_NS + S)).findings
    assert finding.sub_kind == "running"
    assert finding.sentence.startswith(f"Broker 1 exited by itself, with exit code {code};")


def test_unexpected_exit_of_a_controller_is_found(tmp_path: Path) -> None:
    (finding,) = _judged(tmp_path, _end(1, node="q2")).findings
    assert finding.sentence == (
        "Controller 2 exited by itself, with exit code 1; its last lines are in logs/q2.log."
    )


def test_controller_that_runs_and_refuses_connections_is_found(tmp_path: Path) -> None:
    (finding,) = _judged(tmp_path, closed=("q1",)).findings
    assert finding.sub_kind == "closed"
    assert finding.sentence == (
        "Controller 1 refuses connections at the end, and its process runs; its last lines are in "
        "logs/q1.log."
    )


@pytest.mark.parametrize("code", [-9, 137, -15, 143, 0])
def test_broker_that_may_have_been_killed_yields_no_finding(code: int, tmp_path: Path) -> None:
    assert not _judged(tmp_path, _end(code)).violations


@pytest.mark.parametrize(("fault_on", "expected"), [("b1", 1), ("zk1", 0)])
def test_faults_on_other_nodes_excuse_an_exit_at_start(
    fault_on: str, expected: int, tmp_path: Path
) -> None:
    end = _end(1, starting=True, at_ns=CRASH_NS + S)
    assert _judged(tmp_path, end, fault_on=fault_on).violations == expected
