"""The clocks of a host by the lab's: offsets with a bound, from exchanges with its agent.

In an exchange the lab reads its monotonic clock, the agent both of the host's, and the lab its own
again. The host's moment lies between the lab's two, so the offset of the monotonic clocks is known
within half of the round trip. The clocks drift apart: for another moment the bound grows with the
distance. Of all exchanges near a moment the one with the least bound there counts, which is mostly
that with the shortest round trip (as in the clock filter of RFC 5905).

A wall clock may be set and leap, so its offset is not carried from moment to moment: the host reads
both of its clocks at once, and the monotonic one places this moment on the lab's.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from urteil.harness.host_clocks import BOUND, MONOTONIC_OFFSET, WALL_OFFSET

DRIFT_PPM = 1_200
"""Two kernels may each slew a clock by 500 ppm, and crystals differ by 100."""
NEAR = 64
"""The number of exchanges on either side of a moment that are considered."""
FIRST_EXCHANGES = 8
READINGS = 3
NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """`sent_ns` and `received_ns` are the lab's monotonic clock, `host_ns` the host's between."""

    sent_ns: int
    received_ns: int
    host_ns: int

    @property
    def offset_ns(self) -> int:
        """The host's monotonic clock less the lab's."""
        return self.host_ns - (self.sent_ns + self.received_ns) // 2

    def bound_ns(self, host_ns: int) -> int:
        """The bound of the offset's error when the host's clock shows `host_ns`."""
        drift_ns = abs(host_ns - self.host_ns) * DRIFT_PPM // 1_000_000
        return (self.received_ns - self.sent_ns + 1) // 2 + drift_ns


class HostClock:
    """Converts times of a host to the lab's clock. Thread-safe."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []
        self._lock = threading.Lock()

    def add(self, exchange: Exchange) -> None:
        with self._lock:
            bisect.insort(self._exchanges, exchange, key=_host_ns)

    def lab_time(self, host_ns: int) -> tuple[int, int]:
        """The lab's monotonic clock at the host's time `host_ns`, and the bound in ns."""
        with self._lock:
            at = bisect.bisect_left(self._exchanges, host_ns, key=_host_ns)
            near = self._exchanges[max(0, at - NEAR) : at + NEAR]
        best = min(near, key=lambda exchange: exchange.bound_ns(host_ns))
        return host_ns - best.offset_ns, best.bound_ns(host_ns)


def read_clocks() -> tuple[int, int, int]:
    """This machine's monotonic clock, its wall clock, and the ns between which both were read."""
    readings = []
    for _ in range(READINGS):
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((before_ns, wall_ns, after_ns - before_ns))
    return min(readings, key=lambda reading: reading[2])


def measure(host: str, clock: HostClock, read: Callable[[], Sequence[int]]) -> list[dict[str, Any]]:
    """Add an exchange, and describe both offsets in rows of `samples`.

    `read` returns what `read_clocks` does on the host.
    """
    sent_ns = time.monotonic_ns()
    host_ns, host_wall_ns, host_gap_ns = read()
    received_ns = time.monotonic_ns()
    clock.add(Exchange(sent_ns=sent_ns, received_ns=received_ns, host_ns=host_ns))
    at_ns, bound_ns = clock.lab_time(host_ns)
    lab_ns, lab_wall_ns, lab_gap_ns = read_clocks()
    offsets_ns = {
        WALL_OFFSET: (host_wall_ns - at_ns) - (lab_wall_ns - lab_ns),
        MONOTONIC_OFFSET: host_ns - at_ns,
        BOUND: bound_ns + host_gap_ns + lab_gap_ns,
    }
    common = {"at_ns": at_ns, "source": host, "labels": "{}"}
    return [common | {"metric": name, "value": ns / NS} for name, ns in offsets_ns.items()]


def _host_ns(exchange: Exchange) -> int:
    return exchange.host_ns
