"""A follower's use of fetch responses: starts inside a batch, and corrupt records."""

from __future__ import annotations

from pathlib import Path

from tests.broker.replication.plain import Plain, records, state
from urteil.broker.replication.followed_partition import FollowedPartition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchResponse


def follower(folder: Path) -> tuple[Plain, FollowedPartition]:
    plain = Plain(folder / "b", broker_id=2)
    plain.partition.become_follower(state(1, 1))
    return plain, FollowedPartition(plain.partition)


def answer(data: bytes | memoryview, **more: int) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(records=memoryview(data), **more)


def test_empty_log_starts_inside_the_leaders_first_batch(tmp_path: Path) -> None:
    """DeleteRecords left the leader's log starting at 3; its batch of [0, 4] is sent whole."""
    plain, following = follower(tmp_path)
    following.restart_from(3)
    assert following.position()[0] == 3
    sent = answer(records(5, leader_epoch=1), high_watermark=5, log_start_offset=3)
    assert following.apply_response(sent, 0) is ErrorCode.NONE
    assert (plain.log.log_start_offset, plain.log.log_end_offset) == (3, 5)
    assert plain.log.read(3, 1 << 20, upto=5).size > 0


def test_log_that_ends_inside_the_leaders_first_batch_is_truncated(
    tmp_path: Path,
) -> None:
    """DeleteRecords left the leader's log starting at 1, within a batch [0, 2], and with no word of
    the epoch before it, in which we have records that nobody else has."""
    plain, following = follower(tmp_path)
    plain.log.append_as_follower(records(2, leader_epoch=0), 0)
    sent = answer(records(3, leader_epoch=1), high_watermark=3, log_start_offset=1)
    assert following.apply_response(sent, 0) is ErrorCode.NONE
    assert (plain.log.log_start_offset, plain.log.log_end_offset) == (1, 3)
    assert plain.log.epochs.entries == [(1, 1)]


def test_overlapping_batch_is_fetched_again(tmp_path: Path) -> None:
    plain, following = follower(tmp_path)
    plain.log.append_as_follower(records(3, leader_epoch=0), 0)
    late = records(3, leader_epoch=1, base_offset=2)
    sent = answer(late, high_watermark=5, log_start_offset=3)
    assert following.apply_response(sent, 0) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert following.position()[0] == 0


def test_repeated_records_are_not_appended(tmp_path: Path) -> None:
    plain, following = follower(tmp_path)
    sent = answer(records(2, leader_epoch=1), high_watermark=0, log_start_offset=0)
    assert following.apply_response(sent, 0) is ErrorCode.NONE
    assert following.apply_response(sent, 0) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert plain.log.log_end_offset == 2


def test_corrupt_records_of_a_leader_are_rejected(tmp_path: Path) -> None:
    plain, following = follower(tmp_path)
    good = bytes(records(2, leader_epoch=1))
    for position in range(16, len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 4
        sent = answer(damaged, high_watermark=2, log_start_offset=0)
        assert following.apply_response(sent, 0) is ErrorCode.CORRUPT_MESSAGE
        assert plain.log.log_end_offset == 0
        assert plain.log.high_watermark == 0


def test_follower_is_behind_until_it_has_all_committed_records(tmp_path: Path) -> None:
    _, following = follower(tmp_path)
    assert following.is_behind
    first, second = records(2, leader_epoch=1), records(2, leader_epoch=1, base_offset=2)
    following.apply_response(answer(first, high_watermark=4, log_start_offset=0), 0)
    assert following.is_behind
    following.apply_response(answer(second, high_watermark=4, log_start_offset=0), 0)
    assert not following.is_behind
