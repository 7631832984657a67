"""Records of the offsets topic: Kafka's bytes, replay, and which partition holds a group."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from urteil.broker.base.coordinator_partition import java_hash, partition_for
from urteil.broker.groups.group import Group
from urteil.broker.groups.group_state import GroupState
from urteil.broker.groups.pending_offsets import Committed
from urteil.broker.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group,
    decode_offset,
    decode_place,
    encode,
)
from urteil.broker.groups.shard import Shard
from urteil.broker.wire.primitives import WireError


def test_an_offset_has_kafkas_bytes() -> None:
    key = encode(1, OffsetCommitKey(group="g", topic="t", partition=7))
    assert key == struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 7)
    value = OffsetCommitValue(offset=42, leader_epoch=3, metadata="m", commit_timestamp=99)
    assert encode(3, value) == struct.pack(">hqih1sq", 3, 42, 3, 1, b"m", 99)


def offset_record(offset: int, partition: int = 0) -> tuple[bytes, bytes]:
    key = encode(1, OffsetCommitKey(group="g", topic="t", partition=partition))
    return key, encode(3, OffsetCommitValue(offset=offset))


def test_the_later_record_counts_whichever_is_replayed_last() -> None:
    shard = Shard(0)
    shard.replay(*offset_record(20), log_offset=6)
    shard.replay(*offset_record(10), log_offset=5)
    assert shard.offsets["g"]["t", 0].value.offset == 20
    shard.replay(offset_record(0)[0], None, log_offset=7)
    assert shard.offsets["g"] == {}


def test_loading_restores_groups() -> None:
    member = GroupMetadataValue.MemberMetadata(
        member_id="m", client_id="c", client_host="/h", rebalance_timeout=5, session_timeout=9,
        subscription=b"s", assignment=b"a",
    )  # fmt: skip
    value = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol="range", leader="m", members=[member]
    )
    shard = Shard(0)
    shard.replay(encode(2, GroupMetadataKey(group="g")), encode(3, value), 0)
    shard.replay(*offset_record(3), log_offset=1)
    shard.replay(struct.pack(">h", 9), b"later", 2)
    shard.finish_loading(lambda name: Group(name, initial_delay_ms=0, max_size=9), 1000)
    group = shard.groups["g"]
    assert (group.state, group.generation, group.leader) == (GroupState.STABLE, 4, "m")
    assert group.members["m"].assignment == b"a"
    assert group.next_deadline_ms() == 1009


def test_partition_of_a_group_matches_java_hash() -> None:
    assert java_hash("hello") == 99162322
    assert java_hash("polygenelubricants") == -(1 << 31)
    assert partition_for("polygenelubricants", 50) == 0
    assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


@pytest.mark.parametrize(
    "key",
    [
        b"\0\1\0",
        struct.pack(">hh1sh1s", 1, 1, b"g", 1, b"t"),
        struct.pack(">hh1sh1si", 1, 9, b"g", 1, b"t", 7),
        struct.pack(">hhh1si", 1, -1, 1, b"t", 7),
        struct.pack(">hh1shi", 1, 1, b"g", -1, 7),
        struct.pack(">hh1sh1si", 1, 1, b"\xff", 1, b"t", 7),
    ],
    ids=["short", "cut", "lying", "no group", "no topic", "no text"],
)
def test_malformed_key_is_an_error(key: bytes) -> None:
    with pytest.raises(WireError):
        decode_place(key)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\3", b"\0\x09"])
@pytest.mark.parametrize("decode", [decode_offset, decode_group])
def test_malformed_value_is_an_error(decode: Callable[[bytes], object], data: bytes) -> None:
    """One that its reader knows: the others of its partition are read all the same."""
    with pytest.raises(WireError):
        decode(data)


def test_offset_key_is_decoded_and_other_keys_are_not() -> None:
    assert decode_place(offset_record(3, partition=5)[0]) == ("g", "t", 5)
    assert decode_place(encode(2, GroupMetadataKey(group="g"))) is None


def test_deleted_groups_are_not_loaded() -> None:
    """Their positions have tombstones, or were part of a transaction that was aborted."""
    shard = Shard(0)
    shard.replay(*offset_record(3), log_offset=0)
    shard.replay(offset_record(3)[0], None, log_offset=1)
    key = encode(1, OffsetCommitKey(group="aborted", topic="t", partition=0))
    shard.replay(key, encode(3, OffsetCommitValue(offset=1)), 2, producer_id=7)
    shard.transaction_ended(7, 3, commit=False)
    shard.finish_loading(lambda name: Group(name, initial_delay_ms=0, max_size=9), 1000)
    assert shard.groups == {}


def test_ended_transactions_are_kept_only_during_their_appends() -> None:
    """Else a coordinator would remember every producer that ever committed positions."""
    shard, where = Shard(0), ("g", "t", 0)
    for producer_id in range(100):
        shard.pending.begin_append([where], producer_id)
        shard.transaction_ended(producer_id, 2 * producer_id + 1, commit=True)
        committed = Committed(OffsetCommitValue(offset=producer_id), 2 * producer_id)
        shard.pending.add(producer_id, where, committed)
        assert not shard.pending.groups()
        shard.pending.end_append([where], producer_id)
        shard.transaction_ended(producer_id, 1000, commit=False)
    assert not shard.pending._ended
