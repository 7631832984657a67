"""A live member keeps its offsets; a member without heartbeats may lose them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.harness.clients.specs import spec_of
from tests.harness.clients.stops import NoPauses
from urteil.harness.clients.offsets import active_group_offsets, deleted_offsets
from urteil.harness.clients.offsets.active_group_offsets import SILENT_NS, ActiveMember
from urteil.harness.evidence.journal import Commit, CommitRead, Committed
from urteil.harness.protocol.framing import encode_string

OFFSET_COMMIT, OFFSET_FETCH, JOIN, HEARTBEAT, SYNC = 8, 9, 11, 12, 14
TOPIC = struct.pack(">i", 1) + encode_string("t") + struct.pack(">ii", 1, 0)
UNKNOWN_MEMBER_ID = 25


class _Broker:
    """A broker whose responses take 10 ms; `heartbeat_error` is the error of heartbeats."""

    now_ns, heartbeat_error = 0, 0

    def call(self, request: bytes) -> bytes:
        self.now_ns += 10_000_000
        (api,) = struct.unpack_from(">h", request, 4)
        return (
            b"\0\0\0\1"
            + {
                JOIN: struct.pack(">ihi", 0, 0, 3)
                + encode_string("range")
                + encode_string("m")
                + encode_string("m"),
                SYNC: struct.pack(">ihi", 0, 0, 0),
                HEARTBEAT: struct.pack(">ih", 0, self.heartbeat_error),
                OFFSET_COMMIT: TOPIC + struct.pack(">h", 0),
                OFFSET_FETCH: TOPIC
                + struct.pack(">q", 17)
                + encode_string("")
                + struct.pack(">hh", 0, 0),
            }[api]
        )


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> tuple[ActiveMember, _Broker, list[Any]]:
    broker: Any = _Broker()
    written: list[Any] = []
    for module in (active_group_offsets, deleted_offsets):
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: broker.now_ns)
    journal: Any = type("Journal", (), {"write": staticmethod(written.append)})
    active_member = ActiveMember(spec_of("active1", "active", brief_ms="1000"), journal, NoPauses())
    monkeypatch.setattr(
        active_member, "_at_coordinator", lambda group, act: act(broker, group) or True
    )
    return active_member, broker, written


def test_member_reads_its_offsets(
    client: tuple[ActiveMember, _Broker, list[Any]],
) -> None:
    member, broker, written = client
    assert member.join()
    assert [type(entry) for entry in written] == [Commit, Committed]
    broker.now_ns += SILENT_NS - 1_000_000_000
    member.keep_alive()
    assert isinstance(written[-1], CommitRead)
    assert member.is_known


def test_unknown_member_journals_a_deletion(
    client: tuple[ActiveMember, _Broker, list[Any]],
) -> None:
    member, broker, written = client
    member.join()
    member.keep_alive()
    broker.heartbeat_error, known_ns = UNKNOWN_MEMBER_ID, broker.now_ns
    broker.now_ns += SILENT_NS
    member.keep_alive()
    assert not member.is_known
    member.give_up()
    deletion = written[-1]
    assert isinstance(deletion, Commit)
    assert deletion.deletes
    assert deletion.invoke_ns <= known_ns
