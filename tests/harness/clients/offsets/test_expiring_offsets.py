"""What is to be kept for a while is asked for until then, and again when it must be gone."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.offsets import deleted_offsets, expiring_offsets
from urteil.harness.clients.offsets.expiring_offsets import LATE_NS, Keeper
from urteil.harness.evidence.journal import Commit, CommitRead, Committed
from urteil.harness.protocol.framing import encode_string

MS = 1_000_000
OFFSET_COMMIT = 8
TOPIC = struct.pack(">i", 1) + encode_string("t") + struct.pack(">ii", 1, 0)


class _Stop:
    def wait(self, seconds: float) -> bool:
        return False


class _Broker:
    """Takes every commit, and tells every position as `told`; each answer takes 10 ms."""

    now_ns, told = 0, 17

    def call(self, request: bytes) -> bytes:
        self.now_ns += 10 * MS
        (api,) = struct.unpack_from(">h", request, 4)
        if api == OFFSET_COMMIT:
            return b"\0\0\0\1" + TOPIC + struct.pack(">h", 0)
        return (
            b"\0\0\0\1"
            + TOPIC
            + struct.pack(">q", self.told)
            + encode_string("")
            + struct.pack(">hh", 0, 0)
        )


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> tuple[Keeper, _Broker, list[Any]]:
    """A client that keeps positions for a second, beside a broker of its own time."""
    broker: Any = _Broker()
    written: list[Any] = []
    for module in (expiring_offsets, deleted_offsets):
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: broker.now_ns)
    journal: Any = type("Journal", (), {"write": staticmethod(written.append)})
    stop: Any = _Stop()
    keeper = Keeper(spec_of("brief1", "brief", brief_ms="1000"), journal, stop)
    monkeypatch.setattr(keeper, "_visit", lambda group, act: act(broker, group) or True)
    return keeper, broker, written


def test_a_position_is_deleted_by_time(kept: tuple[Keeper, _Broker, list[Any]]) -> None:
    keeper, broker, written = kept
    keeper.look()
    (first, done), asked = written[:2], written[2:]
    assert (first.group, done.outcome) == ("urteil-group-brief-0", "ok")
    assert [type(one) for one in asked] == [CommitRead]
    broker.now_ns += 1000 * MS
    keeper.look()
    (deletion,) = [one for one in written if isinstance(one, Commit) and one.deletes]
    assert deletion.group == first.group
    assert deletion.invoke_ns >= first.invoke_ns + 1000 * MS
    ends = [one for one in written if isinstance(one, Committed) and one.number == deletion.number]
    assert not ends
    broker.now_ns += LATE_NS
    keeper.look()
    ends = [one for one in written if isinstance(one, Committed) and one.number == deletion.number]
    assert [one.outcome for one in ends] == ["ok"]


def test_an_answer_that_comes_when_the_time_is_over_may_be_either(
    kept: tuple[Keeper, _Broker, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, broker, written = kept
    keeper.look()
    monkeypatch.setattr(keeper, "_next_ns", 1 << 62)  # nothing else is committed
    broker.now_ns = keeper._kept[0].until_ns - 5 * MS
    written.clear()
    keeper.look()
    assert not written


def test_one_in_three_is_kept_as_long_as_ever(kept: tuple[Keeper, _Broker, list[Any]]) -> None:
    keeper, broker, _ = kept
    for _ in range(6):
        keeper.look()
        broker.now_ns += 400 * MS
    assert [one.until_ns > 1 << 61 for one in keeper._kept] == [False, False, True] * 2
