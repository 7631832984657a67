"""The keeper of a standing cluster plays faults and heals what nobody heals any more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.chaos.paper import PaperCluster
from tests.waiting import until
from urteil.chaos.views import LabFailure, NodeState
from urteil.harness.fault_keeper import FaultServer, FaultSession, Refused

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
    with session.fault("pause", "b1", expiry_s=60) as (proof, hit):
        assert proof.acted
        assert hit == ["b1"]
        assert standing.state("b1") is NodeState.PAUSED
    assert standing.state("b1") is NodeState.RUNNING


def test_what_a_session_began_ends_with_it(standing: Standing, held: ExitStack) -> None:
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


def test_healing_everything_is_for_all_sessions(standing: Standing, held: ExitStack) -> None:
    session = standing.session()
    held.enter_context(session.fault("crash", "b1", expiry_s=60))
    held.enter_context(session.fault("bandwidth", "b1->b2", expiry_s=60))
    told = standing.session().heal_all()
    assert told[0].startswith("crash: b1 runs")
    assert "healthy" in told[-1]
    assert standing.state("b1") is NodeState.RUNNING
    assert not standing.cluster.net.spoilt


def test_what_cannot_be_played_is_told(standing: Standing) -> None:
    session = standing.session()
    with (
        pytest.raises(Refused, match="pause takes no option x"),
        session.fault("pause", "b1", expiry_s=1, options={"x": 1}),
    ):
        pass
    with (
        pytest.raises(Refused, match="neither a role"),
        session.fault("pause", "b9", expiry_s=1),
    ):
        pass


def test_who_has_no_key_is_not_let_in(standing: Standing) -> None:
    with pytest.raises(LabFailure, match="does not let us in"):
        FaultSession(standing.server.port, "00" * 16)
    with standing.session().fault("pause", "b1", expiry_s=60) as (proof, _):
        assert proof.acted
