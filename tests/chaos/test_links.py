"""Links of real Toxiproxy servers between real ZooKeeper servers."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from urteil.chaos.link_rules import REQUEST, LinkRule
from urteil.chaos.links import Links
from urteil.chaos.observations import DOWNSTREAM, LabFailure, Link, UnreadableLink
from urteil.harness.cluster.ensemble import write_zookeeper, zookeeper_argv
from urteil.harness.cluster.toxiproxy_nodes import Toxiproxies
from urteil.harness.dependencies.toxiproxy import plain_toxiproxy_binary
from urteil.harness.runtimes.process import MachinePrograms, ProcessRuntime
from urteil.harness.runtimes.runtime import NodeSpec


class Lab:
    """Three ZooKeeper servers and their links; brokers are only addresses."""

    def __init__(self, folder: Path) -> None:
        self.runtime = ProcessRuntime(folder, brokers=2, zookeepers=3)
        self.plan = self.runtime.plan
        self.links = Links(self.plan, Toxiproxies(self.runtime, folder))
        for node in self.plan.zookeepers:
            home = folder / node
            write_zookeeper(self.plan, node, home, home)
            argv = zookeeper_argv(self.runtime.programs, home)
            self.runtime.start(node, NodeSpec(argv=argv, cwd=home))
        self.links.start()

    def close(self) -> None:
        self.runtime.close()

    def mode(self, node: str) -> str:
        """leader or follower; empty if the server does not serve."""
        address = (self.plan.address(node), self.plan.ports.zookeeper)
        with contextlib.suppress(OSError), socket.create_connection(address, 2) as connection:
            connection.sendall(b"srvr")
            answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
            return answer.partition("Mode: ")[2].split("\n")[0]
        return ""

    def leader(self) -> str:
        return next((node for node in self.plan.zookeepers if self.mode(node) == "leader"), "")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("links"))
    try:
        until(lambda: all(lab.mode(node) for node in lab.plan.zookeepers))
        yield lab
    finally:
        lab.close()


def test_cut_stalls_one_direction_and_heals(lab: Lab) -> None:
    there, back = Link("b1", "zk1"), Link("b2", "zk1")
    lab.links.cut([there])
    assert not lab.links.probe(there, timeout_s=0.5).answered
    until(lambda: lab.links.probe(back).answered)
    assert lab.links.disturbed_links() == {there: ("cut_downstream", "cut_upstream")}
    lab.links.heal_all()
    until(lambda: lab.links.probe(there).answered)
    assert lab.links.disturbed_links() == {}


def test_stalled_connection_continues_after_healing(lab: Lab) -> None:
    link = Link("b1", "zk1")
    address = (lab.plan.address_from("b1", "zk1"), lab.plan.ports.zookeeper)
    with socket.create_connection(address, 5) as connection:
        lab.links.cut([link])
        connection.sendall(b"ruok")
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(4)
        lab.links.heal([link])
        connection.settimeout(60)
        assert connection.recv(4) == b"imok"


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first"), (None,)])
def test_toxiproxy_survives_overlapping_faults(lab: Lab, order: tuple[str | None, ...]) -> None:
    """A connection that the first of two toxics has closed, while the second still held its data,
    kept a chain of its own; Toxiproxy 2.12 then panicked at the next toxic."""
    link, other = Link("b1", "zk1"), Link("b1", "zk2")
    address = (lab.plan.address_from("b1", "zk1"), lab.plan.ports.zookeeper)
    lab.links.add_toxic([link], "limit_data", {"bytes": 3}, streams=[DOWNSTREAM], owner="first")
    lab.links.cut([link], answers_only=True, owner="second")
    with socket.create_connection(address, 5) as connection:
        connection.sendall(b"ruok")
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(4)
        for owner in order:
            lab.links.heal([link], owner=owner)
        lab.links.cut([link, other], owner="third")
        assert not lab.links.probe(link, timeout_s=0.5).answered
        assert not lab.links.probe(other, timeout_s=0.5).answered
        lab.links.heal_all()
    until(lambda: lab.links.probe(link).answered)
    until(lambda: lab.links.probe(other).answered)


def test_fault_still_acts_after_healing_of_an_earlier_one(lab: Lab) -> None:
    link = Link("b2", "zk2")
    lab.links.latency([link], latency_ms=10, owner="first")
    lab.links.latency([link], latency_ms=150, owner="second")
    lab.links.heal([link], owner="first")
    assert lab.links.disturbed_links() == {link: ("latency_upstream.second",)}
    assert (lab.links.probe(link, timeout_s=10).rtt_ms or 0) >= 150
    lab.links.heal_all()
    until(lambda: 0 < (lab.links.probe(link).rtt_ms or 0) < 150)  # none was, with that latency


@pytest.mark.parametrize("answers_only", [False, True])
def test_latency_lengthens_the_round_trip(lab: Lab, *, answers_only: bool) -> None:
    link = Link("b2", "zk2")
    lab.links.latency([link], latency_ms=150, answers_only=answers_only)
    lab.links.latency([link], latency_ms=100, answers_only=answers_only)
    assert (lab.links.probe(link, timeout_s=10).rtt_ms or 0) >= 100
    lab.links.heal_all()
    until(lambda: 0 < (lab.links.probe(link).rtt_ms or 0) < 100)


def test_closed_link_refuses_connections_until_healing(lab: Lab) -> None:
    link = Link("b2", "zk3")
    lab.links.close([link])
    assert "refused" in lab.links.probe(link).detail
    lab.links.heal_all()
    lab.links.heal_all()
    until(lambda: lab.links.probe(link).answered)


def test_leader_cut_from_its_followers_is_replaced(lab: Lab) -> None:
    old = until(lab.leader)
    others = [node for node in lab.plan.zookeepers if node != old]
    lab.links.cut(lab.links.links_between([old], others))
    until(lambda: any(lab.mode(node) == "leader" for node in others))
    lab.links.heal_all()
    until(lambda: all(lab.mode(node) for node in lab.plan.zookeepers))


def test_hanging_toxiproxy_is_restarted_with_its_faults(lab: Lab) -> None:
    """Toxiproxy's API hangs on a proxy whose peer does not read."""
    full, other = Link("b1", "zk2"), Link("b1", "zk1")
    lab.runtime.pause("zk2")
    try:
        with socket.socket() as connection:
            connection.connect((lab.plan.address_from("b1", "zk2"), lab.plan.ports.zookeeper))
            _fill(connection)
            before = lab.links.restarts
            lab.links.cut([full, other])
            assert lab.links.restarts == before + 1
            assert not lab.links.probe(other, timeout_s=0.5).answered
    finally:
        lab.runtime.resume("zk2")
    lab.links.heal_all()
    until(lambda: lab.links.probe(other).answered)


def test_frame_link_with_a_stalled_peer_is_cut(lab: Lab) -> None:
    link = Link("b1", "b2")
    deaf = socket.create_server((lab.plan.address("b2"), lab.plan.ports.internal))
    with deaf, socket.socket() as connection:
        connection.connect((lab.plan.address_from("b1", "b2"), lab.plan.ports.internal))
        _fill(connection)
        before = lab.links.restarts
        lab.links.cut([link])
        assert lab.links.restarts == before
    lab.links.heal([link])


def test_rule_on_a_link_without_frames_is_refused(lab: Lab) -> None:
    rule = LinkRule(direction=REQUEST, act="drop")
    with pytest.raises(UnreadableLink, match=r'b1->zk1: .* was not created with "kafka": true'):
        lab.links.add_rule([Link("b1", "b2"), Link("b1", "zk1")], rule, owner="r")
    assert not lab.links.disturbed_links()


@pytest.mark.thorough
def test_plain_toxiproxy_is_named_as_the_reason(tmp_path: Path) -> None:
    class Plain(MachinePrograms):
        def toxiproxy(self) -> str:
            return str(plain_toxiproxy_binary())

    runtime = ProcessRuntime(tmp_path, brokers=2, zookeepers=1)
    runtime.programs = Plain()
    try:
        links = Links(runtime.plan, Toxiproxies(runtime, tmp_path))
        links.start()
        with pytest.raises(UnreadableLink, match=r"b1->b2: .* is a plain Toxiproxy"):
            links.add_rule([Link("b1", "b2")], LinkRule(direction=REQUEST, act="drop"), owner="r")
    finally:
        runtime.close()


def test_restarted_toxiproxy_reports_that_it_lost_hits(lab: Lab) -> None:
    link = Link("b1", "b2")
    lab.links.add_rule([link], LinkRule(direction=REQUEST, act="drop"), owner="before")
    lab.links.restart("b1")
    lab.links.add_rule([link], LinkRule(direction=REQUEST, act="record"), owner="after")
    lab.links.heal([link])
    assert "beside b1 was restarted" in lab.links.lost_hits(owner="before")
    assert lab.links.lost_hits(owner="after") == ""


def test_dead_toxiproxy_is_a_failure_of_the_lab(lab: Lab) -> None:
    lab.links.check()
    lab.runtime.kill("toxiproxy-b2")
    with pytest.raises(LabFailure, match="beside b2 died"):
        lab.links.check()
    with pytest.raises(LabFailure):
        lab.links.heal_all()


def _fill(connection: socket.socket) -> None:
    """Send until the peer reads no more."""
    connection.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while True:
            connection.sendall(b"x" * 1_000_000)
