"""Faults that act on clients, on paper: whom they mean, what proves them, what healing leaves."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS, slow_poll
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import LabFailure, NodeState, NodeStatus


class PaperClients:
    """Clients that only remember what was done to them; `deaf` ones do nothing of it."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.states = dict.fromkeys(("p1", "p2", "g1", "g2"), NodeState.RUNNING)
        self.acts: list[str] = []
        self.deaf = deaf
        self.journals = dict.fromkeys(self.states, 0)

    def names(self, kind: str) -> list[str]:
        letters = {"producer": "p", "group": "g", "consumer": "c", "app": "a", "txn": "t"}
        letter = letters.get(kind, "x")
        return [n for n, s in self.states.items() if n[0] == letter and s is not NodeState.DEAD]

    def status(self, name: str) -> NodeStatus:
        code = -9 if self.states[name] is NodeState.DEAD else None
        return NodeStatus(node=name, state=self.states[name], pid=7, exit_code=code)

    def _become(self, act: str, name: str, state: NodeState) -> NodeStatus:
        self.acts.append(f"{act} {name}")
        if not self.deaf:
            self.states[name] = state
        return self.status(name)

    def kill(self, name: str) -> NodeStatus:
        return self._become("kill", name, NodeState.DEAD)

    def pause(self, name: str) -> NodeStatus:
        return self._become("pause", name, NodeState.PAUSED)

    def resume(self, name: str) -> NodeStatus:
        return self._become("resume", name, NodeState.RUNNING)

    def start_next_session(self, name: str) -> str:
        self.states[f"{name}.2"] = NodeState.RUNNING
        return f"{name}.2"

    def pause_polling(self, name: str) -> None:
        self.acts.append(f"stall {name}")

    def resume_polling(self, name: str) -> None:
        self.acts.append(f"go_on {name}")

    def join(self) -> str:
        name = f"g{len(self.states)}"
        self._become("join", name, NodeState.RUNNING)
        return name

    def leave(self, name: str, *, deadline_s: float = 10.0) -> None:
        self._become("leave", name, NodeState.DEAD)

    def journal_bytes(self, name: str) -> int:
        self.journals[name] += self.deaf
        return self.journals[name]

    def assignments(self, name: str) -> int:
        return 1


def controls(**more: Any) -> Any:
    return SimpleNamespace(clients=PaperClients(**more))


def arguments(target: str, **options: Any) -> FaultArguments:
    return FaultArguments(target=target, topic="t", seed="1", options=options)


@pytest.mark.parametrize("name", ["kill_client", "pause_client", "slow_poll"])
def test_it_acts_on_whom_it_means_and_heals(name: str) -> None:
    cluster = controls()
    fault = FAULTS[name](arguments("members"))
    proof = fault.begin(cluster)
    assert proof.acted, proof.text
    assert fault.targets == ("g1", "g2")
    fault.heal(cluster)
    fault.heal(cluster)
    assert fault.find_residual_effects(cluster) == ""


def test_two_sessions_run_until_the_older_one_is_killed() -> None:
    cluster = controls()
    fault = FAULTS["second_session"](arguments("p1"))
    assert fault.begin(cluster).acted
    assert fault.heal(cluster) == "p1 is gone"
    assert fault.find_residual_effects(cluster) == ""
    assert cluster.clients.names("producer") == ["p2", "p1.2"]


def test_one_that_sleeps_gets_a_second_session_beside_it() -> None:
    cluster = controls()
    cluster.clients.pause("p1")
    proof = FAULTS["second_session"](arguments("p1")).begin(cluster)
    assert proof.acted
    assert proof.text == "p1 is paused as pid 7, p1.2 is running as pid 7"


@pytest.mark.parametrize("name", ["kill_client", "pause_client"])
def test_without_effect_there_is_no_proof(name: str) -> None:
    assert not FAULTS[name](arguments("producer")).begin(controls(deaf=True)).acted


def test_a_killed_client_is_followed_by_a_session_of_its_own() -> None:
    cluster = controls()
    fault = FAULTS["kill_client"](arguments("g1"))
    fault.begin(cluster)
    assert fault.heal(cluster) == "g1.2 took over"


def test_one_of_a_kind_is_chosen_by_the_seed() -> None:
    chosen = set()
    for seed in range(20):
        fault = FAULTS["pause_client"](FaultArguments(target="producer", seed=str(seed)))
        fault.begin(controls())
        chosen |= set(fault.targets)
    assert chosen == {"p1", "p2"}


def test_whom_nobody_knows_is_told() -> None:
    with pytest.raises(ValueError, match=r"'g9' is no client: producer.*g1, g2"):
        FAULTS["kill_client"](arguments("g9")).begin(controls())
    with pytest.raises(NoTarget, match="no reader runs"):
        FAULTS["kill_client"](arguments("readers")).begin(controls())


def test_a_storm_ends_with_everybody_gone_who_joined() -> None:
    cluster = controls()
    fault = FAULTS["rebalance_storm"](arguments("members", every_ms=1))
    assert fault.begin(cluster).acted
    while cluster.clients.acts.count("leave g5") == 0:
        pass
    told = fault.heal(cluster)
    acts = cluster.clients.acts
    joined = [act.split()[1] for act in acts if act.startswith("join")]
    assert {act.split()[1] for act in acts if act.startswith("leave")} == set(joined)
    assert told == f"{len(joined)} joined and left"


def test_a_storm_that_fails_is_the_labs_fault() -> None:
    cluster = controls()
    fault = FAULTS["rebalance_storm"](arguments("members", every_ms=1))
    fault.begin(cluster)
    cluster.clients.leave = lambda name: 1 / 0
    fault._thread.join(5)
    with pytest.raises(LabFailure, match="ZeroDivisionError"):
        fault.heal(cluster)


def test_who_is_killed_for_good_has_no_successor() -> None:
    cluster = controls()
    fault = FAULTS["kill_client"](arguments("p1,p2", for_good=True))
    assert fault.begin(cluster).acted
    assert fault.heal(cluster) == "nobody takes over from p1, p2"
    assert not fault.find_residual_effects(cluster)
    assert "p1.2" not in cluster.clients.states


def test_healing_what_never_began_does_nothing() -> None:
    for name in ("kill_client", "pause_client", "slow_poll", "rebalance_storm"):
        FAULTS[name](arguments("members")).heal(controls())


def test_a_member_that_polls_and_is_given_nothing_does_not_stand_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It writes a line a second then."""
    monkeypatch.setattr(slow_poll, "DEADLINE_S", 2.0)
    cluster = controls()
    monkeypatch.setattr(cluster.clients, "journal_bytes", lambda _name: int(time.monotonic()))
    assert not FAULTS["slow_poll"](arguments("member")).begin(cluster).acted


def test_only_members_are_told_to_stand_still() -> None:
    """Others would die of the signal, and write nothing for that."""
    cluster = controls()
    with pytest.raises(ValueError, match="p1 is no group member"):
        FAULTS["slow_poll"](arguments("p1,g1")).begin(cluster)
    assert not cluster.clients.acts


def test_a_client_that_ended_by_itself_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = controls()

    def ended(name: str) -> NodeStatus:
        return NodeStatus(node=name, state=NodeState.DEAD, pid=7, exit_code=3)

    monkeypatch.setattr(cluster.clients, "kill", ended)
    assert not FAULTS["kill_client"](arguments("p1")).begin(cluster).acted


def test_for_good_may_be_said_in_text() -> None:
    cluster = controls()
    fault = FAULTS["kill_client"](arguments("p1", for_good="false"))
    fault.begin(cluster)
    assert fault.heal(cluster) == "p1.2 took over"


def test_a_client_that_another_fault_paused_is_not_paused_again() -> None:
    """Nor woken by the healing of the second."""
    cluster = controls()
    cluster.clients.pause("p1")
    fault = FAULTS["pause_client"](arguments("p1,p2"))
    assert fault.begin(cluster).acted
    assert fault.targets == ("p2",)
    fault.heal(cluster)
    assert cluster.clients.states["p1"] is NodeState.PAUSED
    with pytest.raises(NoTarget, match="p1: nobody runs"):
        FAULTS["pause_client"](arguments("p1")).begin(cluster)
