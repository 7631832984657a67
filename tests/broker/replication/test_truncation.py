"""Truncation of a follower by leader epochs, in several rounds if needed."""

from __future__ import annotations

from pathlib import Path

from tests.broker.replication.plain import Plain, records, state
from urteil.broker.replication.followed_partition import FollowedPartition
from urteil.broker.replication.partition_read import FetchTerms, read_partition
from urteil.broker.replication.truncation import truncation_point
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchResponse

TERMS = FetchTerms(replica_id=2, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)


def write(plain: Plain, runs: list[tuple[int, int]]) -> None:
    """Append `count` records in each leader epoch of [(epoch, count)], as a follower would."""
    for epoch, count in runs:
        for _ in range(count):
            end = plain.log.log_end_offset
            batch = records(1, leader_epoch=epoch, base_offset=end)
            assert plain.log.append_as_follower(batch, 0).error is ErrorCode.NONE


def settle(leader: Plain, follower: Plain) -> int:
    """Fetch until the follower has the leader's log; returns the number of truncations."""
    following, cuts = FollowedPartition(follower.partition), 0
    for _ in range(20):
        request = following.request(1 << 20)
        read = read_partition(leader.partition, request, TERMS, 1 << 20, 0.0, min_one=True)
        assert read.error is ErrorCode.NONE
        cuts += read.diverges
        data = FetchResponse.PartitionData(
            diverging_epoch=FetchResponse.EpochEndOffset(
                epoch=read.diverging_epoch, end_offset=read.diverging_end_offset
            ),
            high_watermark=read.high_watermark,
            log_start_offset=read.log_start_offset,
            records=memoryview(b"".join(read.records)),
        )
        assert following.apply_response(data, 0) is ErrorCode.NONE
        if not read.diverges and not read.size:
            return cuts
    raise AssertionError("the follower does not settle")


def pair(
    tmp_path: Path, leader_runs: list[tuple[int, int]], follower_runs: list[tuple[int, int]]
) -> tuple[Plain, Plain]:
    leader, follower = Plain(tmp_path / "a"), Plain(tmp_path / "b", broker_id=2)
    write(leader, leader_runs)
    write(follower, follower_runs)
    epoch = max(epoch for epoch, _ in leader_runs + follower_runs) + 1
    leader.partition.become_leader(state(1, epoch), 0.0)
    follower.partition.become_follower(state(1, epoch))
    return leader, follower


def same(leader: Plain, follower: Plain) -> bool:
    def content(plain: Plain) -> bytes:
        read = plain.log.read(0, 1 << 20, upto=plain.log.log_end_offset)
        return b"".join(read.records)

    return content(leader) == content(follower)


def test_log_that_is_a_prefix_is_not_truncated(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path, [(0, 4), (1, 2)], [(0, 4)])
    assert settle(leader, follower) == 0
    assert same(leader, follower)


def test_diverging_end_is_truncated(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path, [(0, 4), (2, 2)], [(0, 6)])
    assert settle(leader, follower) == 1
    assert same(leader, follower)


def test_interleaved_epochs_need_several_truncations(tmp_path: Path) -> None:
    """KIP-279's example: logs diverge before the epoch both seem to share."""
    leader, follower = pair(tmp_path, [(0, 2), (2, 1), (3, 1), (5, 1)], [(0, 1), (1, 2), (4, 3)])
    assert settle(leader, follower) >= 2
    assert same(leader, follower)


def test_epoch_without_records_diverges_once(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path, [(0, 3)], [(0, 3)])
    follower.log.assign_epoch_start(1, 3)
    leader.partition.become_leader(state(1, 2), 0.0)
    follower.partition.become_follower(state(1, 2))
    assert settle(leader, follower) <= 1
    assert same(leader, follower)


def test_log_without_epochs_is_truncated_to_the_high_watermark(tmp_path: Path) -> None:
    plain = Plain(tmp_path / "a")
    write(plain, [(0, 6)])
    plain.log.update_high_watermark(4)
    assert truncation_point(plain.log, -1, -1) == 4
    assert truncation_point(plain.log, -1, 5) == 5
