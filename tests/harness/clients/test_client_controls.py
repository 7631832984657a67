"""Client processes are killed, paused, and followed by their next session."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from urteil.chaos.observations import NodeState
from urteil.harness.clients.client_controls import WorkloadClients
from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.processes import Clients, spawn_process

SLEEPER = (
    "import signal, time; signal.signal(signal.SIGUSR1, lambda *_: None); "
    "print('up', flush=True); time.sleep(60)"
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[WorkloadClients]:
    clients = Clients(
        tmp_path, lambda _argv, log: spawn_process([sys.executable, "-c", SLEEPER], log)
    )

    def start(kind: str, name: str, session: int) -> None:
        clients.prepare(name, client_kinds()["producer"])

    result = WorkloadClients(tmp_path, clients, start)
    for name, kind in (("p1", "producer"), ("g1", "group"), ("g2", "group")):
        start(kind, name, 1)
        result.register(name, kind)
    yield result
    clients.kill_all()


def test_kill_is_recorded_and_followed_by_a_session(lab: WorkloadClients, tmp_path: Path) -> None:
    status = lab.kill("p1")
    assert (status.state, status.exit_code) == (NodeState.DEAD, -9)
    (act,) = [json.loads(line) for line in (tmp_path / "clients.jsonl").read_text().splitlines()]
    assert (act["act"], act["subject"], act["outcome"]) == ("kill client", "p1", "ok")
    assert lab.start_next_session("p1") == "p1.2" == lab.start_next_session("p1")
    assert lab.names("producer") == ["p1.2"]
    lab.kill("p1.2")
    assert lab.start_next_session("p1.2") == "p1.3"


def test_unexpected_client_exit_is_no_kill(tmp_path: Path) -> None:
    """Its exit is a failure of the run."""
    clients = Clients(tmp_path, spawn_process)
    lab = WorkloadClients(tmp_path, clients, lambda *_: None)
    clients.run("p1", ["/bin/sh", "-c", "exit 3"])
    lab.register("p1", "producer")
    until(lambda: lab.status("p1").state is NodeState.DEAD)
    assert lab.kill("p1").exit_code == 3
    assert not (tmp_path / "clients.jsonl").exists()
    assert "client p1 ended with exit code 3" in clients.failures()[0]


def test_paused_client_resumes(lab: WorkloadClients) -> None:
    assert lab.pause("g1").state is NodeState.PAUSED
    assert lab.status("g2").state is NodeState.RUNNING
    assert lab.resume("g1").state is NodeState.RUNNING


def test_members_join_under_new_names_and_leave(lab: WorkloadClients) -> None:
    assert lab.join() == "g3"
    lab.leave("g3")
    assert sorted(lab.names("group")) == ["g1", "g2"]
    assert lab.join() == "g4"


def test_assignments_are_counted_from_the_journal(lab: WorkloadClients, tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir(exist_ok=True)
    assert lab.assignments("g1") == lab.journal_bytes("g1") == 0
    lines = ['["assigned",1,"assigned",1,"m",[["t",0]]]', '["assigned",2,"revoked",1,"m",[]]']
    (tmp_path / "journal" / "g1.jsonl").write_text("\n".join(lines) + "\n")
    assert lab.assignments("g1") == 1
    assert lab.journal_bytes("g1") > 0


@pytest.mark.parametrize(
    "kind", [k for k, client_kind in client_kinds().items() if client_kind.handles_signals]
)
def test_early_signal_waits_for_its_handler(tmp_path: Path, kind: str) -> None:
    clients = Clients(tmp_path, spawn_process)
    try:
        clients.prepare("c1", client_kinds()[kind])
        clients.send_signal("c1", signal.SIGUSR1)
        pid = clients.state("c1")[0]

        def handles_sigterm() -> bool:
            assert clients.state("c1")[1] is None
            return _signals(pid, "SigCgt", signal.SIGTERM)

        until(handles_sigterm)
        assert _signals(pid, "ShdPnd", signal.SIGUSR1)
    finally:
        clients.kill_all()


def _signals(pid: int, field: str, number: int) -> bool:
    """Whether a mask of the process has this signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith(field)]
    return bool(int(mask, 16) >> (number - 1) & 1)
