"""The fault server of a standing cluster plays faults and heals abandoned ones."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.chaos.paper import PaperCluster
from tests.waiting import until
from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.controls import Controls
from urteil.chaos.faults import Proof
from urteil.chaos.faults.process.crash import Crash
from urteil.chaos.observations import LabFailure, Link, NodeState, NodeStatus, NotHealthy
from urteil.harness.fault_server import FaultRejected, FaultServer, FaultSession

KEY = b"k" * 16


class Standing:
    """A server over a cluster on paper."""

    def __init__(self) -> None:
        self.cluster = PaperCluster()
        self.server = FaultServer(self.cluster, [], KEY)

    def session(self) -> FaultSession:
        return FaultSession(self.server.port, KEY.hex())

    def state(self, node: str) -> NodeState:
        return self.cluster.states[node]


@pytest.fixture
def standing() -> Standing:
    return Standing()


@pytest.fixture
def held() -> Iterator[ExitStack]:
    """Faults whose blocks go on to the end of the test, or of their session."""
    with contextlib.suppress(LabFailure, OSError), ExitStack() as stack:
        yield stack


def test_a_fault_acts_for_the_length_of_its_block(standing: Standing) -> None:
    session = standing.session()
    with session.fault("pause", "b1", expiry_s=60) as held:
        assert held.proof.acted
        assert held.targets == ["b1"]
        assert standing.state("b1") is NodeState.PAUSED
    assert standing.state("b1") is NodeState.RUNNING


def test_pids_name_the_dead_nodes(standing: Standing) -> None:
    session = standing.session()
    with session.fault("crash", "b1", expiry_s=60):
        assert session.pids()[1] == ["b1"]
    assert session.pids()[1] == []


def test_faults_of_a_session_end_with_it(standing: Standing, held: ExitStack) -> None:
    session = standing.session()
    for node in ("b1", "b2"):
        held.enter_context(session.fault("pause", node, expiry_s=60))
    session.close()
    until(lambda: standing.state("b1") is standing.state("b2") is NodeState.RUNNING)


def test_a_fault_held_too_long_expires_alone(standing: Standing, held: ExitStack) -> None:
    session = standing.session()
    held.enter_context(session.fault("pause", "b1", expiry_s=0.2))
    held.enter_context(session.fault("pause", "b2", expiry_s=60))
    until(lambda: standing.state("b1") is NodeState.RUNNING)
    assert standing.state("b2") is NodeState.PAUSED


def test_heal_all_includes_all_sessions(standing: Standing, held: ExitStack) -> None:
    session = standing.session()
    held.enter_context(session.fault("crash", "b1", expiry_s=60))
    held.enter_context(session.fault("bandwidth", "b1->b2", expiry_s=60))
    healed_lines = standing.session().heal_all()
    assert any(line.startswith("crash: b1 runs") for line in healed_lines)
    assert "healthy" in healed_lines[-1]
    assert standing.state("b1") is NodeState.RUNNING
    assert not standing.cluster.net.degraded


def test_impossible_fault_is_rejected(standing: Standing) -> None:
    session = standing.session()
    with (
        pytest.raises(FaultRejected, match="pause takes no option x"),
        session.fault("pause", "b1", expiry_s=1, options={"x": 1}),
    ):
        pass
    with (
        pytest.raises(FaultRejected, match="neither a role"),
        session.fault("pause", "b9", expiry_s=1),
    ):
        pass


def test_client_without_key_is_rejected(standing: Standing) -> None:
    with pytest.raises(LabFailure, match="rejects the connection"):
        FaultSession(standing.server.port, "00" * 16)
    with standing.session().fault("pause", "b1", expiry_s=60) as held:
        assert held.proof.acted


def test_fault_that_expires_during_begin_is_healed_afterwards(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the middle of its begin, whose second half nobody would undo."""
    begin = Crash.begin

    def slowly(fault: Crash, controls: Controls) -> Proof:
        threading.Event().wait(0.3)
        return begin(fault, controls)

    monkeypatch.setattr(Crash, "begin", slowly)
    session = standing.session()
    with session.fault("crash", "b1", expiry_s=0.1) as held:
        assert held.proof.acted
        until(lambda: standing.state("b1") is NodeState.RUNNING)
        assert standing.cluster.acts == ["kill b1", "start b1"]


def test_session_end_heals_a_fault_whose_healing_failed(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume, failures = standing.cluster.resume, iter([ActFailed("the cluster is busy")])

    def resume_later(node: str) -> NodeStatus:
        for failure in failures:
            raise failure
        return resume(node)

    monkeypatch.setattr(standing.cluster, "resume", resume_later)
    session = standing.session()
    with pytest.raises(LabFailure, match="busy"), session.fault("pause", "b1", expiry_s=60):
        pass
    assert standing.state("b1") is NodeState.PAUSED
    session.close()
    until(lambda: standing.state("b1") is NodeState.RUNNING)


@pytest.mark.parametrize(
    "faults", [("crash", "broker_from_zookeeper"), ("broker_from_zookeeper", "crash")]
)
def test_unhealable_fault_does_not_prevent_other_healing(
    standing: Standing, held: ExitStack, monkeypatch: pytest.MonkeyPatch, faults: tuple[str, str]
) -> None:
    """A broker that is cut off from ZooKeeper does not start before its links are healed."""
    start, net = standing.cluster.start, standing.cluster.net

    def start_if_it_can(node: str, *, deadline_s: float = 60.0) -> NodeStatus:
        if Link(node, "zk1") in net.broken:
            raise NotHealthy(f"{node} did not register")
        return start(node, deadline_s=deadline_s)

    monkeypatch.setattr(standing.cluster, "start", start_if_it_can)
    session = standing.session()
    for fault in faults:
        held.enter_context(session.fault(fault, "b1", expiry_s=60))
    healed_lines = standing.session().heal_all()
    assert standing.state("b1") is NodeState.RUNNING
    assert not net.broken
    assert "healthy" in healed_lines[-1]


def test_heal_all_continues_after_a_node_that_fails_to_start(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = standing.cluster.start

    def start_all_but(node: str, *, deadline_s: float = 60.0) -> NodeStatus:
        if node == "b1":
            raise NotHealthy("b1 did not register")
        return start(node, deadline_s=deadline_s)

    monkeypatch.setattr(standing.cluster, "start", start_all_but)
    for node in standing.cluster.brokers:
        standing.cluster.kill(node)
    with pytest.raises(LabFailure, match="b1 did not register"):
        standing.session().heal_all()
    assert standing.state("b2") is standing.state("b3") is NodeState.RUNNING
