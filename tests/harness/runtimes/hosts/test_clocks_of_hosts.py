"""Clocks of hosts over network namespaces, which share one kernel and its clocks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.runtimes.hosts.namespaces import Network, network_of_hosts
from tests.waiting import until
from urteil.harness.host_clocks import BOUND, FILE, MONOTONIC_OFFSET, WALL_OFFSET
from urteil.harness.host_load import METRIC
from urteil.harness.runtimes.hosts import host_clock, host_facts
from urteil.harness.runtimes.hosts.host_clock import FIRST_EXCHANGES, read_clocks
from urteil.harness.runtimes.ssh import SshRuntime

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]
AHEAD_NS = 50_000_000
ROUNDING_S = 1e-6


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network_of_hosts(tmp_path_factory.mktemp("hosts"), count=1) as network:
        yield network
        network.await_nothing_left()


def read_offsets(run_dir: Path) -> list[dict[str, float]]:
    """The offsets of each exchange with their bound."""
    exchanges: dict[int, dict[str, float]] = {}
    for line in (run_dir / FILE).read_text().splitlines():
        row = json.loads(line)
        if row["metric"] == METRIC:
            continue
        exchanges.setdefault(row["at_ns"], {})[row["metric"]] = row["value"]
    return list(exchanges.values())


def test_clocks_of_one_kernel_agree_within_the_bound(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a host of another boot: its times are translated, and become what they were."""
    (tmp_path / "boot_id").write_text("of another machine")
    monkeypatch.setattr(host_facts, "BOOT_ID", tmp_path / "boot_id")
    runtime = SshRuntime(tmp_path, inventory=network.inventory, brokers=1, zookeepers=1)
    now_ns = time.monotonic_ns()
    at_ns, bound_ns = runtime.plan.lab_time("b1", now_ns)
    assert abs(at_ns - now_ns) <= bound_ns
    assert bound_ns > 0
    until(lambda: len(read_offsets(tmp_path)) > FIRST_EXCHANGES, "an exchange during the run")
    until(lambda: METRIC in (tmp_path / FILE).read_text(), "the load of the host")
    runtime.close()
    for offsets in read_offsets(tmp_path):
        for metric in (WALL_OFFSET, MONOTONIC_OFFSET):
            assert abs(offsets[metric]) <= offsets[BOUND] + ROUNDING_S


def test_wall_clock_that_is_ahead_is_measured(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab's wall clock is put back here, which the agent's is not."""

    def read_behind() -> tuple[int, int, int]:
        monotonic_ns, wall_ns, gap_ns = read_clocks()
        return monotonic_ns, wall_ns - AHEAD_NS, gap_ns

    monkeypatch.setattr(host_clock, "read_clocks", read_behind)
    SshRuntime(tmp_path, inventory=network.inventory, brokers=1, zookeepers=1).close()
    for offsets in read_offsets(tmp_path):
        assert abs(offsets[WALL_OFFSET] - AHEAD_NS / 1e9) <= offsets[BOUND] + ROUNDING_S
        assert abs(offsets[MONOTONIC_OFFSET]) <= offsets[BOUND] + ROUNDING_S
