"""Offsets are read until they expire, and again when they must be deleted."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.harness.clients.specs import spec_of
from tests.harness.clients.stops import NoPauses
from urteil.harness.clients.offsets import deleted_offsets, expiring_offsets
from urteil.harness.clients.offsets.expiring_offsets import LATE_NS, ExpiringOffsets
from urteil.harness.evidence.journal import Commit, CommitRead, Committed
from urteil.harness.protocol.framing import encode_string

MS = 1_000_000
OFFSET_COMMIT = 8
TOPIC = struct.pack(">i", 1) + encode_string("t") + struct.pack(">ii", 1, 0)


class _Broker:
    """A broker that accepts every commit and returns `offset`; each response takes 10 ms."""

    now_ns, offset = 0, 17

    def call(self, request: bytes) -> bytes:
        self.now_ns += 10 * MS
        (api,) = struct.unpack_from(">h", request, 4)
        if api == OFFSET_COMMIT:
            return b"\0\0\0\1" + TOPIC + struct.pack(">h", 0)
        return (
            b"\0\0\0\1"
            + TOPIC
            + struct.pack(">q", self.offset)
            + encode_string("")
            + struct.pack(">hh", 0, 0)
        )


@pytest.fixture
def client_and_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[ExpiringOffsets, _Broker, list[Any]]:
    """A client whose offsets expire after a second, and a broker with its own clock."""
    broker: Any = _Broker()
    written: list[Any] = []
    for module in (expiring_offsets, deleted_offsets):
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: broker.now_ns)
    journal: Any = type("Journal", (), {"write": staticmethod(written.append)})
    client = ExpiringOffsets(spec_of("brief1", "brief", brief_ms="1000"), journal, NoPauses())
    monkeypatch.setattr(client, "_at_coordinator", lambda group, act: act(broker, group) or True)
    return client, broker, written


def test_offset_expires(client_and_broker: tuple[ExpiringOffsets, _Broker, list[Any]]) -> None:
    client, broker, written = client_and_broker
    client.step()
    (first, done), request = written[:2], written[2:]
    assert (first.group, done.outcome) == ("urteil-group-brief-0", "ok")
    assert [type(entry) for entry in request] == [CommitRead]
    broker.now_ns += 1000 * MS
    client.step()
    (deletion,) = [commit for commit in written if isinstance(commit, Commit) and commit.deletes]
    assert deletion.group == first.group
    assert deletion.invoke_ns >= first.invoke_ns + 1000 * MS
    ends = [
        committed
        for committed in written
        if isinstance(committed, Committed) and committed.number == deletion.number
    ]
    assert not ends
    broker.now_ns += LATE_NS
    client.step()
    ends = [
        committed
        for committed in written
        if isinstance(committed, Committed) and committed.number == deletion.number
    ]
    assert [end.outcome for end in ends] == ["ok"]


def test_response_after_the_expiry_is_not_journaled(
    client_and_broker: tuple[ExpiringOffsets, _Broker, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, broker, written = client_and_broker
    client.step()
    monkeypatch.setattr(client, "_next_ns", 1 << 62)  # nothing else is committed
    broker.now_ns = client._groups_by_age[0].until_ns - 5 * MS
    written.clear()
    client.step()
    assert not written


def test_every_third_group_never_expires(
    client_and_broker: tuple[ExpiringOffsets, _Broker, list[Any]],
) -> None:
    client, broker, _ = client_and_broker
    for _ in range(6):
        client.step()
        broker.now_ns += 400 * MS
    assert [group.until_ns > 1 << 61 for group in client._groups_by_age] == [False, False, True] * 2
