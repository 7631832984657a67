"""Member epochs of groups of the protocol `consumer` (KIP-848), and commits in ended epochs.

The coordinator gives a member an epoch with each assignment, and accepts its commits in that epoch
alone. librdkafka reports the epoch in the group metadata for transactions, whose form is
`CGMDv2:`, the epoch as int32, the group, the member id and the instance.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer
from kafka.errors import for_code

from urteil.harness.protocol.committed_offset_requests import (
    find_coordinator_request,
    member_commit_request,
    read_find_coordinator,
    read_member_commit,
)
from urteil.harness.protocol.connection import Connection

METADATA = b"CGMDv2:"
REQUEST_S = 5.0
REJECTIONS = frozenset(
    {"FencedMemberEpochError", "GroupIdNotFoundError", "IllegalGenerationError"}
    | {"StaleMemberEpochError", "UnknownMemberIdError"}
)
"""Errors of a coordinator that stored nothing."""
Slot = tuple[str, int]


def member_epoch(kafka: Consumer) -> int | None:
    """The epoch of a member; None while it is not in its group."""
    metadata: Any = kafka.consumer_group_metadata()
    return epoch_in(metadata)


def epoch_in(metadata: bytes) -> int | None:
    """The epoch in librdkafka's group metadata. ValueError for another form of it."""
    if not metadata.startswith(METADATA):
        raise ValueError(f"group metadata of an unknown form: {metadata[:16]!r}")
    (epoch,) = struct.unpack_from("=i", metadata, len(METADATA))
    return epoch if epoch > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedEpoch:
    """What a member had processed of partitions that it gave back, and in which epoch."""

    epoch: int
    member_id: str
    positions: Mapping[Slot, int]


def commit_in_ended_epoch(
    bootstrap: Sequence[str], group: str, ended: EndedEpoch
) -> tuple[str, str | None]:
    """Commit as the member in the ended epoch. Returns outcome and error: `fail` if the coordinator
    rejected the commit."""
    try:
        with closing(_connect(bootstrap, group)) as coordinator:
            request = member_commit_request(group, ended.epoch, ended.member_id, ended.positions)
            code = read_member_commit(coordinator.call(request))
    except (OSError, struct.error) as failure:
        return "info", type(failure).__name__
    if not code:
        return "ok", None
    error: str = for_code(code).__name__
    return ("fail" if error in REJECTIONS else "info"), error


def _connect(bootstrap: Sequence[str], group: str) -> Connection:
    """A connection to the group's coordinator. OSError if no broker names one."""
    for address in bootstrap:
        try:
            with closing(Connection(address, REQUEST_S)) as broker:
                error, coordinator = read_find_coordinator(
                    broker.call(find_coordinator_request(group))
                )
        except OSError:
            continue
        if not error:
            return Connection(coordinator, REQUEST_S)
    raise ConnectionError(f"no broker names the coordinator of {group}")
