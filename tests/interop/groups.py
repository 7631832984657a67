"""Committed positions of groups, one group a partition of the offsets topic."""

from __future__ import annotations

from typing import Any

from tests.conformance.side import Side
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import OffsetCommitRequest, OffsetFetchRequest

GROUPS = tuple(f"g{number}" for number in range(5))  # of the lab's 5 partitions each has one


def commit(side: Side, topic: str, base: int) -> None:
    """Every group commits `base` and its number as its position in partition 0."""
    for number, group in enumerate(GROUPS):
        position = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=base + number, committed_metadata="m"
        )
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[position])
            ],
        )

        def taken(request: OffsetCommitRequest = request, group: str = group) -> bool:
            answer = side.get(request, 7, to=side.coordinator(group))
            error: int = answer.topics[0].partitions[0].error_code
            return error == ErrorCode.NONE

        side.until(taken)


def committed(side: Side, topic: str) -> list[int]:
    """What every group's coordinator has for partition 0, once it has loaded the group."""
    offsets = []
    for group in GROUPS:
        asked = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=group, topics=[asked])
        answers: list[Any] = []

        def loaded(request: OffsetFetchRequest = request, group: str = group) -> bool:
            answers[:] = [side.get(request, 5, to=side.coordinator(group))]  # noqa: B023
            error: int = answers[0].error_code  # noqa: B023
            return error == ErrorCode.NONE

        side.until(loaded)
        offsets.append(answers[0].topics[0].partitions[0].committed_offset)
    return offsets
