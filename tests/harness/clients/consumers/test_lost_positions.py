"""A member journals the reset of an invalid position."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.errors import OffsetOutOfRangeError

from urteil.harness.clients.consumers.group_consumer import Member

PLACE = TopicPartition("urteil", 0)


@pytest.mark.parametrize("before", [{}, {PLACE: "rebalance"}], ids=["reading", "just assigned"])
def test_reset_is_journaled_also_right_after_an_assignment(
    before: dict[TopicPartition, str],
) -> None:
    member = object.__new__(Member)
    seeks: list[tuple[TopicPartition, int]] = []
    member._kafka = SimpleNamespace(
        beginning_offsets=lambda places, timeout_ms: dict.fromkeys(places, 40),
        seek=lambda place, offset: seeks.append((place, offset)),
    )
    member._position, member._event = {PLACE: 9}, dict(before)
    member._reset(OffsetOutOfRangeError({PLACE: 9}))
    assert (seeks, member._position, member._event) == ([(PLACE, 40)], {}, {PLACE: "reset"})
