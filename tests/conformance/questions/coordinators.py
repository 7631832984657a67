"""FindCoordinator."""

from __future__ import annotations

from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import FindCoordinatorRequest

FIND = Subject("FindCoordinator", ApiKey.FIND_COORDINATOR)


@FIND.question("of a group", versions=range(7))
def of_a_group(asker: Asker) -> Any:
    asker.side.coordinator("any")
    keys = ["a group", "another"]
    return asker.ask(FindCoordinatorRequest(key="a group", key_type=0, coordinator_keys=keys))


@FIND.question("of an empty group")
def of_an_empty_group(asker: Asker) -> Any:
    asker.side.coordinator("any")
    return asker.ask(FindCoordinatorRequest(key="", coordinator_keys=["", "a group"]))


@FIND.question("of a group twice", since=4)
def of_a_group_twice(asker: Asker) -> Any:
    asker.side.coordinator("any")
    return asker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["a group", "a group"]))


@FIND.each("kind", {"2": 2, "-1": -1}, since=1)
def of_another_kind(asker: Asker, kind: int) -> Any:
    return asker.ask(FindCoordinatorRequest(key="a group", key_type=kind, coordinator_keys=["a"]))


@FIND.question("of nothing")
def of_nothing(asker: Asker) -> Any:
    return asker.ask(FindCoordinatorRequest(key="", coordinator_keys=[]))
