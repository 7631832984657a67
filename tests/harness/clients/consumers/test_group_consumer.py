"""A group leader journals the assignments that it makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from urteil.harness.clients.consumers.group_consumer import observe_assignments


def test_assignments_of_a_leader_are_observed() -> None:
    assignments = {"m1": object(), "m2": object()}
    calls: list[tuple[Any, ...]] = []

    def perform(*joined: Any) -> dict[str, Any]:
        calls.append(joined)
        return assignments

    coordinator = SimpleNamespace(_perform_assignment=perform)
    observed: list[dict[str, Any]] = []
    observe_assignments(coordinator, observed.append)
    assert coordinator._perform_assignment("m1", "range", ["m1", "m2"]) is assignments
    assert calls == [("m1", "range", ["m1", "m2"])]
    assert observed == [assignments]
