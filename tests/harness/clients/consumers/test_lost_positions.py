"""A member whose position is none any more tells that it was moved."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.errors import OffsetOutOfRangeError

from urteil.harness.clients.consumers.group_consumer import Member

PLACE = TopicPartition("urteil", 0)


@pytest.mark.parametrize("before", [{}, {PLACE: "rebalance"}], ids=["reading", "just assigned"])
def test_a_reset_is_told_also_of_what_was_just_assigned(before: dict[TopicPartition, str]) -> None:
    member = object.__new__(Member)
    sought: list[tuple[TopicPartition, int]] = []
    member._kafka = SimpleNamespace(
        beginning_offsets=lambda places, timeout_ms: dict.fromkeys(places, 40),
        seek=lambda place, offset: sought.append((place, offset)),
    )
    member._position, member._event = {PLACE: 9}, dict(before)
    member._reset(OffsetOutOfRangeError({PLACE: 9}))
    assert (sought, member._position, member._event) == ([(PLACE, 40)], {}, {PLACE: "reset"})
