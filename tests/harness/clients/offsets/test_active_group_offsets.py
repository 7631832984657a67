"""Who lives keeps its positions; who is not known any more may lose them from then on."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.offsets import active_group_offsets, deleted_offsets
from urteil.harness.clients.offsets.active_group_offsets import SILENT_NS, Reader
from urteil.harness.evidence.journal import Commit, CommitRead, Committed
from urteil.harness.protocol.framing import encode_string

OFFSET_COMMIT, OFFSET_FETCH, JOIN, HEARTBEAT, SYNC = 8, 9, 11, 12, 14
TOPIC = struct.pack(">i", 1) + encode_string("t") + struct.pack(">ii", 1, 0)
UNKNOWN_MEMBER_ID = 25


class _Broker:
    """Each answer takes 10 ms; `beats` is the error of heartbeats."""

    now_ns, beats = 0, 0

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
                HEARTBEAT: struct.pack(">ih", 0, self.beats),
                OFFSET_COMMIT: TOPIC + struct.pack(">h", 0),
                OFFSET_FETCH: TOPIC
                + struct.pack(">q", 17)
                + encode_string("")
                + struct.pack(">hh", 0, 0),
            }[api]
        )


class _Stop:
    def wait(self, seconds: float) -> bool:
        return False


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> tuple[Reader, _Broker, list[Any]]:
    broker: Any = _Broker()
    written: list[Any] = []
    for module in (active_group_offsets, deleted_offsets):
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: broker.now_ns)
    journal: Any = type("Journal", (), {"write": staticmethod(written.append)})
    stop: Any = _Stop()
    one = Reader(spec_of("active1", "active", brief_ms="1000"), journal, stop)
    monkeypatch.setattr(one, "_visit", lambda group, act: act(broker, group) or True)
    return one, broker, written


def test_a_member_asks_for_what_it_committed(reader: tuple[Reader, _Broker, list[Any]]) -> None:
    one, broker, written = reader
    assert one.join()
    assert [type(entry) for entry in written] == [Commit, Committed]
    broker.now_ns += SILENT_NS - 1_000_000_000
    one.live()
    assert isinstance(written[-1], CommitRead)
    assert one.is_known


def test_a_member_that_is_not_known_gives_up(reader: tuple[Reader, _Broker, list[Any]]) -> None:
    one, broker, written = reader
    one.join()
    one.live()
    broker.beats, known_ns = UNKNOWN_MEMBER_ID, broker.now_ns
    broker.now_ns += SILENT_NS
    one.live()
    assert not one.is_known
    one.give_up()
    deletion = written[-1]
    assert isinstance(deletion, Commit)
    assert deletion.deletes
    assert deletion.invoke_ns <= known_ns
