"""Topics that the members of a consumer group subscribe to, from their protocol metadata."""

from __future__ import annotations

import struct

from urteil.broker.groups.group import Group

CONSUMER = "consumer"
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics of all members; None if they are unknown
    (`GroupMetadata.computeSubscribedTopics`)."""
    if group.protocol_type != CONSUMER or group.protocol is None:
        return None
    try:
        return frozenset(
            topic
            for member in group.members.values()
            for topic in _topics(member.metadata(group.protocol))
        )
    except (struct.error, UnicodeDecodeError):
        return None


def _topics(metadata: bytes) -> list[str]:
    """The topics of a ConsumerProtocolSubscription: after its version, in every version."""
    (count,) = _INT.unpack_from(metadata, _SHORT.size)
    at, topics = _SHORT.size + _INT.size, []
    for _ in range(count):
        (length,) = _SHORT.unpack_from(metadata, at)
        at += _SHORT.size
        topics.append(struct.unpack_from(f">{max(length, 0)}s", metadata, at)[0].decode())
        at += length
    return topics
