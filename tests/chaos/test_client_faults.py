"""Faults of clients, on paper clients: selection, proof and healing."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.faults.clients import slow_poll
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import LabFailure, NodeState, NodeStatus


class PaperClients:
    """Clients that record all calls. With `without_effect` the calls change nothing."""

    def __init__(self, *, without_effect: bool = False) -> None:
        self.states = dict.fromkeys(("p1", "p2", "g1", "g2"), NodeState.RUNNING)
        self.acts: list[str] = []
        self.without_effect = without_effect
        self.journals = dict.fromkeys(self.states, 0)

    def names(self, kind: str) -> list[str]:
        letters = {"producer": "p", "group": "g", "consumer": "c", "txn": "t"}
        letter = letters.get(kind, "x")
        return [n for n, s in self.states.items() if n[0] == letter and s is not NodeState.DEAD]

    def names_of_role(self, role: str) -> list[str]:
        return [n for n, s in self.states.items() if n[0] == role[0] and s is not NodeState.DEAD]

    def application_leader(self) -> str | None:
        return next(reversed(self.names_of_role("app")), None)

    def operate_application(self, act: str) -> str:
        self.acts.append(f"operate {act}")
        return "" if self.without_effect else "confirmed"

    def empty_stores(self, name: str) -> list[str]:
        self.acts.append(f"empty {name}")
        return [] if self.without_effect else ["application/a1/state/1_0/store"]

    def status(self, name: str) -> NodeStatus:
        code = -9 if self.states[name] is NodeState.DEAD else None
        return NodeStatus(node=name, state=self.states[name], pid=7, exit_code=code)

    def _become(self, act: str, name: str, state: NodeState) -> NodeStatus:
        self.acts.append(f"{act} {name}")
        if not self.without_effect:
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
        self.journals[name] += self.without_effect
        return self.journals[name]

    def assignments(self, name: str) -> int:
        return 1


def controls(**more: Any) -> Any:
    return SimpleNamespace(clients=PaperClients(**more))


def arguments(target: str, **options: Any) -> FaultArguments:
    return FaultArguments(target=target, topic="t", seed="1", options=options)


@pytest.mark.parametrize("name", ["kill_client", "pause_client", "slow_poll"])
def test_fault_acts_on_its_targets_and_heals(name: str) -> None:
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


def test_paused_client_gets_a_second_session() -> None:
    cluster = controls()
    cluster.clients.pause("p1")
    proof = FAULTS["second_session"](arguments("p1")).begin(cluster)
    assert proof.acted
    assert proof.text == "p1 is paused as pid 7, p1.2 is running as pid 7"


@pytest.mark.parametrize("name", ["kill_client", "pause_client"])
def test_fault_without_effect_did_not_act(name: str) -> None:
    assert not FAULTS[name](arguments("producer")).begin(controls(without_effect=True)).acted


def test_killed_client_gets_a_next_session() -> None:
    cluster = controls()
    fault = FAULTS["kill_client"](arguments("g1"))
    fault.begin(cluster)
    assert fault.heal(cluster) == "g1.2 started"


def test_emptied_process_loses_its_stores_while_it_is_dead() -> None:
    cluster = controls()
    cluster.clients.states |= {"a1": NodeState.RUNNING, "a2": NodeState.RUNNING}
    fault = FAULTS["empty_app_state"](arguments("app_leader"))
    assert fault.begin(cluster).acted
    assert cluster.clients.acts == ["kill a2", "empty a2"]
    assert fault.heal(cluster) == "a2.2 started"


def test_process_without_stores_is_not_emptied() -> None:
    cluster = controls(without_effect=True)
    cluster.clients.states["a1"] = NodeState.RUNNING
    assert not FAULTS["empty_app_state"](arguments("apps")).begin(cluster).acted


def test_application_without_a_known_leader_gives_no_target() -> None:
    short = FaultArguments(target="app_leader", seed="1", election_deadline_s=0.1)
    with pytest.raises(NoTarget, match="lead the application's group"):
        FAULTS["kill_client"](short).begin(controls())


def test_seed_selects_one_client_of_a_kind() -> None:
    chosen = set()
    for seed in range(20):
        fault = FAULTS["pause_client"](FaultArguments(target="producer", seed=str(seed)))
        fault.begin(controls())
        chosen |= set(fault.targets)
    assert chosen == {"p1", "p2"}


def test_unknown_client_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"'g9' is not a client: give producer.*g1, g2"):
        FAULTS["kill_client"](arguments("g9")).begin(controls())
    with pytest.raises(NoTarget, match="no reader runs"):
        FAULTS["kill_client"](arguments("readers")).begin(controls())


def test_storm_ends_with_all_new_members_gone() -> None:
    cluster = controls()
    fault = FAULTS["rebalance_storm"](arguments("members", every_ms=1))
    assert fault.begin(cluster).acted
    while cluster.clients.acts.count("leave g5") == 0:
        pass
    text = fault.heal(cluster)
    acts = cluster.clients.acts
    joined = [act.split()[1] for act in acts if act.startswith("join")]
    assert {act.split()[1] for act in acts if act.startswith("leave")} == set(joined)
    assert text == f"{len(joined)} joined and left"


def test_failing_storm_is_a_failure_of_the_lab() -> None:
    cluster = controls()
    fault = FAULTS["rebalance_storm"](arguments("members", every_ms=1))
    fault.begin(cluster)
    cluster.clients.leave = lambda name: 1 / 0
    fault._thread.join(5)
    with pytest.raises(LabFailure, match="ZeroDivisionError"):
        fault.heal(cluster)


def test_client_killed_for_good_has_no_next_session() -> None:
    cluster = controls()
    fault = FAULTS["kill_client"](arguments("p1,p2", for_good=True))
    assert fault.begin(cluster).acted
    assert fault.heal(cluster) == "p1, p2 has no next session"
    assert not fault.find_residual_effects(cluster)
    assert "p1.2" not in cluster.clients.states


def test_healing_without_begin_does_nothing() -> None:
    for name in ("kill_client", "pause_client", "slow_poll", "rebalance_storm"):
        FAULTS[name](arguments("members")).heal(controls())


def test_idle_member_that_polls_is_not_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An idle member writes a line a second."""
    monkeypatch.setattr(slow_poll, "DEADLINE_S", 2.0)
    cluster = controls()
    monkeypatch.setattr(cluster.clients, "journal_bytes", lambda _name: int(time.monotonic()))
    assert not FAULTS["slow_poll"](arguments("member")).begin(cluster).acted


def test_slow_poll_accepts_only_group_members() -> None:
    """Other clients would die of the signal, and their silence would look like a proof."""
    cluster = controls()
    with pytest.raises(ValueError, match="p1 is not a group member"):
        FAULTS["slow_poll"](arguments("p1,g1")).begin(cluster)
    assert not cluster.clients.acts


def test_unexpected_client_exit_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = controls()

    def ended(name: str) -> NodeStatus:
        return NodeStatus(node=name, state=NodeState.DEAD, pid=7, exit_code=3)

    monkeypatch.setattr(cluster.clients, "kill", ended)
    assert not FAULTS["kill_client"](arguments("p1")).begin(cluster).acted


def test_for_good_may_be_text() -> None:
    cluster = controls()
    fault = FAULTS["kill_client"](arguments("p1", for_good="false"))
    fault.begin(cluster)
    assert fault.heal(cluster) == "p1.2 started"


def test_client_that_another_fault_paused_is_not_paused_again() -> None:
    """The healing of the second fault does not resume it either."""
    cluster = controls()
    cluster.clients.pause("p1")
    fault = FAULTS["pause_client"](arguments("p1,p2"))
    assert fault.begin(cluster).acted
    assert fault.targets == ("p2",)
    fault.heal(cluster)
    assert cluster.clients.states["p1"] is NodeState.PAUSED
    with pytest.raises(NoTarget, match="p1: no client runs"):
        FAULTS["pause_client"](arguments("p1")).begin(cluster)


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_act_of_an_operator_needs_a_confirmation(is_confirmed: bool) -> None:
    cluster = controls(without_effect=not is_confirmed)
    fault = FAULTS["operate_app"](arguments("", act="restart"))
    assert fault.begin(cluster).acted == is_confirmed
    assert cluster.clients.acts == ["operate restart"]
    assert fault.find_residual_effects(cluster) == ""
