"""Journals of clients on other machines, by the lab's clock."""

from __future__ import annotations

import msgspec

from urteil.harness.clients.client_main import boot_id
from urteil.harness.evidence.journal import Begin, Entry, TxnBegin
from urteil.harness.runtimes.hosts.host_clock import NS, Exchange, HostClock
from urteil.harness.runtimes.hosts.journal_times import GRID_NS, JournalTimes

AHEAD_NS = 7_000 * NS
"""The host's clock less the lab's."""
BOUND_NS = 2_000_000


def clock_of(*errors_ns: int) -> HostClock:
    """An exchange each second, of which each shows an offset that is wrong by this much."""
    clock = HostClock()
    for second, error_ns in enumerate(errors_ns):
        lab_ns = 100 * NS + second * NS
        clock.add(
            Exchange(
                sent_ns=lab_ns - BOUND_NS,
                received_ns=lab_ns + BOUND_NS,
                host_ns=lab_ns + AHEAD_NS + error_ns,
            )
        )
    return clock


def encode(*entries: Entry) -> bytes:
    return msgspec.json.Encoder().encode_lines(entries)


def decode(lines: bytes) -> list[Entry]:
    return [msgspec.json.decode(line, type=Entry) for line in lines.splitlines()]


def test_times_of_entries_become_those_of_the_lab() -> None:
    host_ns = 100 * NS + AHEAD_NS
    begin = Begin(
        run="r", client="p1", session=1, kind="producer", at_ns=host_ns, wall_ns=5, boot_id="other",
        pid=1, library="kafka-python", version="3", topic_ids={},
    )  # fmt: skip
    txn = TxnBegin(1, host_ns + 3, None, host_ns + 2)
    moved = decode(JournalTimes(clock_of(0)).translate(encode(begin, txn)))
    assert isinstance(moved[0], Begin)
    assert isinstance(moved[1], TxnBegin)
    assert (moved[0].at_ns, moved[0].wall_ns, moved[0].boot_id) == (100 * NS, 5, boot_id())
    assert moved[0].client == "p1"
    assert moved[1].begin_ns == 100 * NS + 3
    assert (moved[1].init_invoke_ns, moved[1].init_ns) == (None, 100 * NS + 2)


def test_times_keep_their_order_and_lie_within_the_bound() -> None:
    """The exchanges contradict each other, each within its bound."""
    times = JournalTimes(clock_of(*(BOUND_NS, -BOUND_NS) * 6))
    host_ns = range(100 * NS + AHEAD_NS, 112 * NS + AHEAD_NS, 7_919_317)
    lab_ns = [times.lab_time(moment) for moment in host_ns]
    assert lab_ns == sorted(set(lab_ns))
    drift_ns = 2 * GRID_NS * 1_200 // 1_000_000
    assert all(
        abs(lab - (host - AHEAD_NS)) <= 2 * BOUND_NS + drift_ns
        for host, lab in zip(host_ns, lab_ns, strict=True)
    )


def test_later_exchange_moves_no_time_that_is_journaled() -> None:
    clock = clock_of(BOUND_NS)
    times = JournalTimes(clock)
    moment = 101 * NS + AHEAD_NS
    before = times.lab_time(moment)
    clock.add(Exchange(sent_ns=101 * NS, received_ns=101 * NS, host_ns=moment))
    assert times.lab_time(moment) == before
    assert JournalTimes(clock).lab_time(moment) != before
