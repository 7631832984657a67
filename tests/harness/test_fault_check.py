"""`urteil faults check`: every fault is healed and reported, whatever fails."""

from __future__ import annotations

import pytest

from tests.chaos.paper import PaperCluster
from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.observations import Limits, NodeState
from urteil.harness.fault_check import check_all, check_fault


def test_failing_fault_is_healed_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = PaperCluster()
    cluster.views["urteil-fault-check"] = cluster.views["t"]
    ask, failures = cluster.cpu_throttling, iter([ActFailed("the cluster is busy")])

    def ask_later(node: str) -> Limits:
        for failure in failures:
            raise failure
        return ask(node)

    monkeypatch.setattr(cluster, "cpu_throttling", ask_later)
    check = check_fault(cluster, "starve")
    assert not check.acted
    assert "the cluster is busy" in check.proof
    assert not cluster.starved
    assert cluster.held == {0: False}


def test_unhealable_fault_does_not_end_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = PaperCluster()

    def refuse(node: str, *, deadline_s: float = 60.0) -> None:
        raise ActFailed("the cluster is busy")

    monkeypatch.setattr(cluster, "start", refuse)
    cluster.views["urteil-fault-check"] = cluster.views["t"]
    fault_checks = check_all(cluster, ["crash", "ring"], runtime="process", target="urteil")
    assert [fault_check.fault for fault_check in fault_checks] == ["crash", "ring"]
    assert not fault_checks[0].healed
    assert "busy" in fault_checks[0].healing
    assert cluster.states["b2"] is NodeState.DEAD
