"""A member that leads its group tells what it gives, and gives it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from urteil.harness.clients.consumers.group_consumer import tell_given


def test_what_a_leader_gives_is_told() -> None:
    given = {"m1": object(), "m2": object()}
    asked: list[tuple[Any, ...]] = []

    def perform(*joined: Any) -> dict[str, Any]:
        asked.append(joined)
        return given

    coordinator = SimpleNamespace(_perform_assignment=perform)
    told: list[dict[str, Any]] = []
    tell_given(coordinator, told.append)
    assert coordinator._perform_assignment("m1", "range", ["m1", "m2"]) is given
    assert asked == [("m1", "range", ["m1", "m2"])]
    assert told == [given]
