"""Links between ZooKeeper servers on two hosts: a Toxiproxy beside each node, probed by the lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.runtimes.hosts.namespaces import network_of_hosts
from tests.waiting import until
from urteil.chaos.link_probes import zookeeper_serves
from urteil.chaos.links import Links
from urteil.chaos.observations import Link
from urteil.harness.cluster.ensemble import write_zookeeper, zookeeper_argv
from urteil.harness.cluster.toxiproxy_nodes import Toxiproxies
from urteil.harness.runtimes.runtime import NodeSpec
from urteil.harness.runtimes.ssh import SshRuntime

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


class Lab:
    """Three ZooKeeper servers, two of them on one host; the broker is only an address."""

    def __init__(self, folder: Path, inventory: Path) -> None:
        self.runtime = SshRuntime(folder, inventory=inventory, brokers=1, zookeepers=3)
        self.plan = self.runtime.plan
        self.links = Links(self.plan, Toxiproxies(self.runtime, folder))
        for node in self.plan.zookeepers:
            directory = folder / "nodes" / node
            home = self.runtime.home(directory)
            write_zookeeper(self.plan, node, directory, home)
            argv = zookeeper_argv(self.runtime.programs, home)
            self.runtime.start(node, NodeSpec(argv=argv, cwd=directory))
        self.links.start()

    def serves(self, node: str) -> bool:
        return zookeeper_serves(*self.plan.direct_address(node), timeout_s=1.0)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("links")
    with network_of_hosts(folder / "hosts", count=2) as network:
        lab = Lab(folder, network.inventory)
        try:
            until(lambda: all(map(lab.serves, lab.plan.zookeepers)))
            yield lab
        finally:
            lab.runtime.close()
    assert list((folder / "nodes" / "zk3" / "data" / "version-2").iterdir())


def test_ensemble_elects_a_leader_through_its_links(lab: Lab) -> None:
    assert lab.plan.address("zk1") == lab.plan.address("zk3") != lab.plan.address("zk2")
    assert "LEADING" in "".join(map(lab.runtime.log, lab.plan.zookeepers))


def test_cut_stalls_one_link_and_heals(lab: Lab) -> None:
    cut, other = Link("b1", "zk2"), Link("b1", "zk1")
    until(lambda: lab.links.probe(cut).answered)
    lab.links.cut([cut])
    assert not lab.links.probe(cut, timeout_s=0.5).answered
    until(lambda: lab.links.probe(other).answered)
    lab.links.heal_all()
    until(lambda: lab.links.probe(cut).answered)


def test_toxiproxy_of_a_host_starts_again_with_its_faults(lab: Lab) -> None:
    link = Link("b1", "zk2")
    lab.links.cut([link])
    lab.links.restart("b1")
    assert lab.links.restarts == 1
    assert not lab.links.probe(link, timeout_s=0.5).answered
    lab.links.heal_all()
    assert lab.links.probe(link, timeout_s=5.0).answered
    lab.links.check()
