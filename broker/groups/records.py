"""Keys and values of `__consumer_offsets`, in Apache Kafka's own format.

Source: OffsetCommitKey, OffsetCommitValue, GroupMetadataKey and GroupMetadataValue of Kafka 3.9's
group-coordinator. Each is preceded by its version as an int16; versions 0 and 1 of a key mean an
offset, version 2 a group.
"""

from __future__ import annotations

import struct as binary
from collections.abc import Sequence

from urteil.broker.wire.primitives import WireError
from urteil.broker.wire.schema import Message, Struct, field, record, struct

OFFSET_KEY_VERSION = 1
OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_VERSION_THAT_EXPIRES = 1
GROUP_KEY_VERSION = 2
GROUP_VALUE_VERSION = 3
NO_TIMESTAMP = -1


@record("0-1")
class OffsetCommitKey(Message):
    group: str = field("string", "0+")
    topic: str = field("string", "0+")
    partition: int = field("int32", "0+")


@record("0-3")
class OffsetCommitValue(Message):
    offset: int = field("int64", "0+")
    leader_epoch: int = field("int32", "3+", default=-1)
    metadata: str = field("string", "0+")
    commit_timestamp: int = field("int64", "0+")
    expire_timestamp: int = field("int64", "1", default=NO_TIMESTAMP)

    @property
    def expires(self) -> bool:
        """Whether the commit has its own expiration time."""
        return self.expire_timestamp != NO_TIMESTAMP


@record("2")
class GroupMetadataKey(Message):
    group: str = field("string", "2+")


@record("0-3")
class GroupMetadataValue(Message):
    @struct
    class MemberMetadata(Struct):
        member_id: str = field("string", "0+")
        group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)
        client_id: str = field("string", "0+")
        client_host: str = field("string", "0+")
        rebalance_timeout: int = field("int32", "1+")
        session_timeout: int = field("int32", "0+")
        subscription: bytes = field("bytes", "0+")
        assignment: bytes = field("bytes", "0+")

    protocol_type: str = field("string", "0+")
    generation: int = field("int32", "0+")
    protocol: str | None = field("string", "0+", nullable="0+")
    leader: str | None = field("string", "0+", nullable="0+")
    current_state_timestamp: int = field("int64", "2+", default=-1)
    members: Sequence[GroupMetadataValue.MemberMetadata] = field("[]MemberMetadata", "0+")


def encode(version: int, message: Message) -> bytes:
    """The version, then the message."""
    return binary.pack(">h", version) + b"".join(message.encode(version))


def _version(data: bytes | memoryview) -> int:
    if len(data) < _SIZE.size:
        raise WireError(f"{len(data)} bytes have no version")
    (version,) = _SIZE.unpack_from(data)
    return int(version)


Place = tuple[str, str, int]
"""Group, topic, partition."""

_SIZE, _PARTITION = binary.Struct(">h"), binary.Struct(">i")


def decode_place(data: bytes | memoryview) -> Place | None:
    """Group, topic and partition of an OffsetCommitKey; None for another key. Raises WireError.

    Parsed by hand in a quarter of the time: loading a shard parses one key per record.
    """
    try:
        (version,) = _SIZE.unpack_from(data)
        if version not in (0, OFFSET_KEY_VERSION):
            return None
        (group_size,) = _SIZE.unpack_from(data, 2)
        topic_at = 4 + group_size
        (topic_size,) = _SIZE.unpack_from(data, topic_at)
        partition_at = topic_at + 2 + topic_size
        (partition,) = _PARTITION.unpack_from(data, partition_at)
        if group_size < 0 or topic_size < 0:
            raise WireError("the key of a position without group or topic")
        topic = str(data[topic_at + 2 : partition_at], "utf-8")
        return str(data[4:topic_at], "utf-8"), topic, partition
    except (binary.error, UnicodeDecodeError) as error:
        raise WireError(f"the key of a position: {error}") from error


def decode_group_key(data: bytes | memoryview) -> str | None:
    """The group of a GroupMetadataKey; None for any other key. Raises WireError."""
    version = _version(data)
    if version != GROUP_KEY_VERSION:
        return None
    return GroupMetadataKey.decode(version, data, 2)[0].group


def content_bytes(value: Message | None) -> int:
    """The size of the client data in a value: subscriptions and assignments of a group."""
    if not isinstance(value, GroupMetadataValue):
        return 0
    return sum(len(member.subscription) + len(member.assignment) for member in value.members)


def decode_offset(data: bytes | memoryview) -> OffsetCommitValue:
    """The value under an OffsetCommitKey. Raises WireError."""
    version = _version(data)
    return OffsetCommitValue.decode(version, data, 2)[0]


def decode_group(data: bytes | memoryview) -> GroupMetadataValue:
    """The value under a GroupMetadataKey. Raises WireError."""
    version = _version(data)
    return GroupMetadataValue.decode(version, data, 2)[0]
