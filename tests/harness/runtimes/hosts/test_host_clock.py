"""The mapping of a host's clocks to the lab's, on clocks whose true offset is known."""

from __future__ import annotations

import random
import time

import pytest

from urteil.harness.host_clocks import BOUND, MONOTONIC_OFFSET, WALL_OFFSET
from urteil.harness.runtimes.hosts.host_clock import (
    DRIFT_PPM,
    Exchange,
    HostClock,
    measure,
    read_clocks,
)

SECOND = 1_000_000_000
ROUNDING_S = 1e-6


def exchange(sent_ns: int, there_ns: int, back_ns: int, host_ns: int) -> Exchange:
    """A request and an answer that take so long; the host shows `host_ns` when it answers."""
    return Exchange(sent_ns=sent_ns, received_ns=sent_ns + there_ns + back_ns, host_ns=host_ns)


def test_offset_is_known_within_half_of_the_round_trip() -> None:
    clock = HostClock()
    clock.add(exchange(1_000, there_ns=600, back_ns=0, host_ns=9_600))
    assert clock.lab_time(9_600) == (1_300, 300)


def test_shortest_round_trip_near_a_moment_counts() -> None:
    clock = HostClock()
    for at in range(5):
        slow = 0 if at == 2 else 50_000_000
        clock.add(exchange(at * SECOND, slow + 1_000_000, slow + 1_000_000, at * SECOND + 77))
    assert clock.lab_time(2 * SECOND + 77)[1] == 1_000_000
    assert clock.lab_time(3 * SECOND + 77)[1] == 1_000_000 + DRIFT_PPM * 1_000
    far_ns = 200 * SECOND
    assert clock.lab_time(far_ns)[1] > 190 * DRIFT_PPM * 1_000, "the bound grows with drift"


@pytest.mark.parametrize("drift_ppm", [-1_000, 0, 90, 1_000])
def test_true_time_is_always_within_the_bound(drift_ppm: int) -> None:
    """A host that was started at another time, with a clock that drifts, over an uneven network."""
    rng = random.Random(drift_ppm)

    def host_clock(lab_ns: int) -> int:
        return 5_000 * SECOND + lab_ns + lab_ns * drift_ppm // 1_000_000

    clock = HostClock()
    for second in range(120):
        there_ns, back_ns = (int(rng.expovariate(1 / 3_000_000)) + 50_000 for _ in range(2))
        sent_ns = second * SECOND
        clock.add(exchange(sent_ns, there_ns, back_ns, host_clock(sent_ns + there_ns)))
    for _ in range(500):
        true_ns = rng.randrange(120 * SECOND)
        at_ns, bound_ns = clock.lab_time(host_clock(true_ns))
        assert abs(at_ns - true_ns) <= bound_ns + 1
        assert bound_ns < 5_000_000


def test_wall_clock_of_a_host_is_measured_at_its_answer() -> None:
    clock = HostClock()

    def read() -> tuple[int, int, int]:
        monotonic_ns, wall_ns, gap_ns = read_clocks()
        return monotonic_ns - 7_000 * SECOND, wall_ns + 3 * SECOND, gap_ns

    for _ in range(3):
        rows = measure("alpha", clock, read)
    values = {row["metric"]: row["value"] for row in rows}
    assert {row["source"] for row in rows} == {"alpha"}
    assert abs(values[WALL_OFFSET] - 3.0) <= values[BOUND] + ROUNDING_S
    assert abs(values[MONOTONIC_OFFSET] + 7_000.0) <= values[BOUND] + ROUNDING_S
    assert all(abs(row["at_ns"] - time.monotonic_ns()) < 60 * SECOND for row in rows)
