"""Groups of hosts for the runs of a night: free ones, usable ones, and those that come back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from urteil.chaos.observations import LabFailure
from urteil.harness.hunt import host_pool
from urteil.harness.hunt.host_pool import HostPool
from urteil.harness.runtimes.hosts.host_check import HostCheck
from urteil.harness.runtimes.hosts.inventory import Host, load_hosts

HOSTS = [Host(name=f"h{n}", address=f"198.18.0.{n}", user="urteil", rack="east") for n in range(6)]
KEEPERS = [Host(name="zk", address="198.18.0.9", user="urteil", runs=("zookeeper",))]


class Machines:
    """Machines of which some are dead."""

    def __init__(self) -> None:
        self.dead: set[str] = set()
        self.problems: list[str] = []

    def check(self, hosts: Sequence[Host]) -> list[HostCheck]:
        return [
            HostCheck(
                host=host,
                facts=None,
                problems=[f"{host.name} does not answer"] if host.name in self.dead else [],
            )
            for host in hosts
        ]

    def pool(self, folder: Path, hosts: Sequence[Host] = HOSTS, size: int = 2) -> HostPool:
        return HostPool(hosts, size, folder, check=self.check, report=self.problems.append)


@pytest.fixture
def machines() -> Machines:
    return Machines()


def names(inventory: Path) -> list[str]:
    return [host.name for host in load_hosts(inventory)]


def test_runs_at_once_have_groups_of_their_own(machines: Machines, tmp_path: Path) -> None:
    pool = machines.pool(tmp_path)
    assert pool.groups == 3
    with ExitStack() as runs:
        inventories = [runs.enter_context(pool.group()) for _ in range(3)]
        assert sorted(name for path in inventories for name in names(path)) == [
            host.name for host in HOSTS
        ]
    assert load_hosts(inventories[0]) == tuple(HOSTS[:2])


def test_run_waits_for_a_free_group(machines: Machines, tmp_path: Path) -> None:
    pool, begun = machines.pool(tmp_path, HOSTS[:2]), threading.Event()

    def play() -> None:
        with pool.group():
            begun.set()

    with pool.group():
        run = threading.Thread(target=play)
        run.start()
        assert not begun.wait(0.05)
    run.join(60)
    assert begun.is_set()


def test_dead_host_is_left_out_until_it_comes_back(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = machines.pool(tmp_path, HOSTS[:3])
    machines.dead = {"h1"}
    for _ in range(2):
        with pool.group() as inventory:
            assert names(inventory) == ["h0", "h2"] or names(inventory) == ["h2", "h0"]
    assert machines.problems == ["h1 does not answer"]
    machines.dead = {"h0"}
    with pytest.raises(LabFailure, match="too few hosts are left for a run: h1 does not answer"):
        pool.group().__enter__()
    monkeypatch.setattr(host_pool, "RETRY_S", -1.0)
    machines.dead = set()
    with pool.group():
        pass


def test_group_runs_brokers_and_zookeeper(machines: Machines, tmp_path: Path) -> None:
    brokers = [Host(name=f"b{n}", address=f"198.18.1.{n}", runs=("broker",)) for n in range(3)]
    with machines.pool(tmp_path, [*brokers, *KEEPERS], 2).group() as inventory:
        assert names(inventory) == ["b0", "zk"]
    two_keepers = [*KEEPERS, Host(name="q", address="198.18.0.8", runs=("controller",))]
    with pytest.raises(ValueError, match="5 hosts cannot form a group of 2"):
        machines.pool(tmp_path, [*brokers, *two_keepers])
    with pytest.raises(ValueError, match="6 hosts cannot form a group of 7"):
        machines.pool(tmp_path, HOSTS, 7)
