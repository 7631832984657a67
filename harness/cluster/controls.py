"""The controls of a cluster of the lab's own. Implements `chaos.controls.Controls`."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from urteil.chaos.admin_controls import AdminControls
from urteil.chaos.controls import ClientControls, ClockControls, ContainerControls, DiskControls
from urteil.chaos.link_probes import fetch_metadata, probe_broker, zookeeper_leads, zookeeper_serves
from urteil.chaos.links import Links
from urteil.chaos.observations import (
    Descriptors,
    Ended,
    LabFailure,
    Limits,
    NodeState,
    NodeStatus,
    NotHealthy,
    PartitionView,
)
from urteil.chaos.packet_controls import PacketControls
from urteil.chaos.quorum_controls import QuorumControls
from urteil.chaos.topology import Plan
from urteil.chaos.waiting import until
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.cluster.controller_requests import ControllerRequests
from urteil.harness.cluster.zookeeper_controls import ZooKeeperControls
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.metadata_requests import metadata_request, read_metadata
from urteil.harness.runtimes.file_descriptors import limit_descriptors, read_descriptors
from urteil.harness.runtimes.runtime import Nodes

POLL_S = 0.05
PROBE_S = 1.0
NAMES_LEADERS = 1
"""The version of Metadata that all releases serve."""


class Holds(Protocol):
    """As `chaos.controls.Controls`: heals faults that are held too long, even after the lab's
    death."""

    def hold(self, fault: str, *, expiry_s: float) -> int: ...

    def release(self, hold: int) -> None: ...


class NoHolds:
    """For clusters that end with the lab: their reaper ends every fault with them."""

    def hold(self, fault: str, *, expiry_s: float) -> int:
        return 0

    def release(self, hold: int) -> None:
        """Does nothing."""


class ClusterControls:
    """Nodes are those of one runtime, state is ZooKeeper's.

    `waits_for_own_znode`: whether a broker starts only after the znode of its previous life has
    disappeared. `lost_session`: whether it ended because its session expired during its start
    (`Target`).
    """

    def __init__(
        self,
        *,
        plan: Plan,
        runtime: Nodes,
        links: Links,
        state: ClusterState,
        admin: AdminControls,
        start_node: Callable[[str], None],
        waits_for_own_znode: Callable[[str], bool],
        lost_session: Callable[[str], bool] = lambda _node: False,
        holds: Holds | None = None,
        log_dirs: Callable[[str], Sequence[Path]] = lambda _node: (),
        clocks: ClockControls | None = None,
        quorum: QuorumControls | None = None,
    ) -> None:
        """`holds` belongs to clusters that outlive the lab. `log_dirs` are a broker's, in the run's
        folder."""
        self._plan = plan
        self._runtime = runtime
        self._links = links
        self._state = state
        self._admin = admin
        self._start_node = start_node
        self._waits_for_own_znode = waits_for_own_znode
        self._lost_session = lost_session
        self._holds = holds or NoHolds()
        self._starting = {node: threading.RLock() for node in self.nodes}
        self._registered_as: dict[str, int | None] = {}
        self._disks = runtime.disks(log_dirs)
        self._clocks = clocks
        self._quorum = quorum
        self._zookeeper_controls = ZooKeeperControls(lambda: state.client, self._servers)
        self._commands = ControllerRequests(state, plan.direct_address)
        self._ended: dict[tuple[str, int], Ended] = {}
        self._not_serving: set[str] = set()
        """Nodes that the lab stopped, or whose start it began and did not see end."""
        self._clients: ClientControls | None = None

    @property
    def brokers(self) -> Sequence[str]:
        return self._plan.brokers

    @property
    def zookeepers(self) -> Sequence[str]:
        return self._plan.zookeepers

    @property
    def voters(self) -> Sequence[str]:
        """The voters in the metadata log, or those of the plan if the quorum is static."""
        return tuple(self._state.voters()) or self._plan.voters

    @property
    def metadata_nodes(self) -> Sequence[str]:
        return self._plan.metadata_nodes

    @property
    def nodes(self) -> Sequence[str]:
        return (*self.metadata_nodes, *self.brokers)

    @property
    def net(self) -> Links:
        return self._links

    @property
    def containers(self) -> ContainerControls:
        containers = self._runtime.containers
        if containers is None:
            raise LabFailure("this fault acts on containers: use --runtime docker")
        return containers

    @property
    def packets(self) -> PacketControls:
        packets = self._runtime.packets
        if packets is None:
            raise LabFailure("this fault acts on packets between hosts: use --runtime ssh")
        return packets

    @property
    def zookeeper_admin(self) -> ZooKeeperControls:
        return self._zookeeper_controls

    @property
    def commands(self) -> ControllerRequests:
        return self._commands

    @property
    def clocks(self) -> ClockControls:
        if self._clocks is None:
            raise LabFailure("brokers have clocks of their own only with ClusterSpec.own_clocks")
        return self._clocks

    @property
    def disks(self) -> DiskControls:
        if self._disks is None:
            raise LabFailure("the lab cannot reach the disks of this cluster's brokers")
        return self._disks

    @property
    def admin(self) -> AdminControls:
        return self._admin

    @property
    def quorum(self) -> QuorumControls:
        if self._quorum is None:
            raise LabFailure("this fault changes the voters of a dynamic quorum: --quorum dynamic")
        return self._quorum

    @property
    def clients(self) -> ClientControls:
        if self._clients is None:
            raise LabFailure("this fault acts on the lab's own clients, and none run")
        return self._clients

    def set_clients(self, clients: ClientControls) -> None:
        """Enable faults on these clients, too."""
        self._clients = clients

    def status(self, node: str) -> NodeStatus:
        return self._runtime.status(node)

    def kill(self, node: str) -> NodeStatus:
        self._store_registration(node)
        return self._runtime.kill(node)

    def stop(self, node: str, *, deadline_s: float = 30.0) -> NodeStatus:
        self._store_registration(node)
        self._not_serving.add(node)
        return self._runtime.stop(node, deadline_s=deadline_s)

    def start(self, node: str, *, deadline_s: float = 60.0) -> NodeStatus:
        """Start a node. Two faults may request it at once: the second finds it running."""
        with self._starting[node]:
            return self._start(node, deadline_s)

    def _start(self, node: str, deadline_s: float) -> NodeStatus:
        if self._runtime.is_alive(node):
            return self._runtime.status(node)
        deadline = time.monotonic() + deadline_s
        if node in self.brokers and self._waits_for_own_znode(node):
            self._await_no_problem(lambda: self._describe_own_znode(node), deadline)
        self._not_serving.add(node)
        self._start_node(node)
        try:
            self._await_no_problem(lambda: self._describe_not_serving(node), deadline, node)
        except NotHealthy:
            if not self._lost_session(node):
                self._note_end(self._runtime.status(node), starting=True)
                raise
            self._start_node(node)
            self._await_no_problem(lambda: self._describe_not_serving(node), deadline, node)
        self._not_serving.discard(node)
        return self._runtime.status(node)

    def _note_end(self, status: NodeStatus, *, starting: bool) -> None:
        """Record the end of a broker or controller, once for each start."""
        if status.node not in self.zookeepers and status.exit_code is not None:
            self._ended.setdefault(
                (status.node, status.starts),
                Ended(
                    node=status.node,
                    starts=status.starts,
                    at_ns=time.monotonic_ns(),
                    exit_code=status.exit_code,
                    starting=starting,
                ),
            )

    def pause(self, node: str) -> NodeStatus:
        return self._runtime.pause(node)

    def resume(self, node: str) -> NodeStatus:
        return self._runtime.resume(node)

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        if allowed:
            self._store_registration(node)
        self._runtime.allow_exit(node, allowed=allowed)

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        return self._runtime.throttle_cpu(node, cpus)

    def restore_cpu(self, node: str) -> Limits:
        return self._runtime.restore_cpu(node)

    def cpu_throttling(self, node: str) -> Limits:
        return self._runtime.cpu_throttling(node)

    def descriptors(self, node: str) -> Descriptors:
        return read_descriptors(node, self._runtime.local_pid(node))

    def limit_descriptors(self, node: str, most: int) -> Descriptors:
        return limit_descriptors(node, self._runtime.local_pid(node), most)

    def hold(self, fault: str, *, expiry_s: float) -> int:
        return self._holds.hold(fault, expiry_s=expiry_s)

    def release(self, hold: int) -> None:
        self._holds.release(hold)

    def zookeeper_leader(self) -> str | None:
        leads = (
            n
            for n in self.zookeepers
            if zookeeper_leads(*self._plan.direct_address(n), timeout_s=1)
        )
        return next(leads, None)

    def controller(self) -> str | None:
        return self._state.controller()

    def registered_brokers(self) -> Sequence[str]:
        return list(self._state.registered_brokers())

    def topics(self) -> Sequence[str]:
        return self._state.topics()

    def partitions(self, topic: str) -> Sequence[PartitionView]:
        return self._state.partitions(topic)

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        views = [view for view in self.partitions(topic) if view.partition == partition]
        return views[0] if views else None

    def named_leaders(self, broker: str) -> dict[tuple[str, int], int]:
        address = "{}:{}".format(*self._plan.direct_address(broker))
        request = metadata_request(1, None, NAMES_LEADERS)
        try:
            with closing(Connection(address, PROBE_S)) as connection:
                _, partitions = read_metadata(connection.call(request), NAMES_LEADERS)
        except (OSError, struct.error) as failure:
            raise LabFailure(f"{broker} does not answer Metadata: {failure}") from failure
        return {(topic, number): leader for topic, number, leader, *_ in partitions}

    def await_healthy(self, *, deadline_s: float) -> float:
        began = time.monotonic()
        self._await_no_problem(self._describe_unhealthy, began + deadline_s)
        return time.monotonic() - began

    @property
    def unexpected_ends(self) -> list[Ended]:
        """Brokers and controllers that ended by themselves, as found by `check` and `start`."""
        return list(self._ended.values())

    def check(self) -> None:
        ended = self._runtime.unexpected_ends()
        for unexpected_end in ended:
            self._note_end(unexpected_end, starting=False)
        if ended:
            names = ", ".join(
                f"{unexpected_end.node} (exit {unexpected_end.exit_code})"
                for unexpected_end in ended
            )
            raise LabFailure(f"ended by itself: {names}")
        self._links.check()

    def closed_nodes(self) -> list[str]:
        """Brokers and controllers that served, and refuse connections although they run."""
        return [
            node
            for node in self.nodes
            if node not in self.zookeepers
            and node not in self._not_serving
            and self._runtime.is_alive(node)
            and self._refuses(node)
        ]

    def _refuses(self, node: str) -> bool:
        try:
            probe_broker(*self._plan.direct_address(node), timeout_s=PROBE_S)
        except OSError as error:
            return isinstance(error, ConnectionRefusedError)
        return False

    def describe_missing_members(self) -> str:
        """A broker that is not registered, or the lack of a controller; empty if there is none."""
        registered = self._state.registered_brokers()
        absent = [node for node in self.brokers if node not in registered]
        if absent:
            return f"not registered: {', '.join(absent)}"
        controller = self._state.controller()
        is_absent = controller in self.brokers and controller not in registered
        return "no controller" if controller is None or is_absent else ""

    def describe_missing_in_metadata(self) -> str:
        """A broker whose metadata for clients, through their own proxy, lacks another one."""
        registered = set(self._state.registered_brokers())
        for node in self.brokers:
            try:
                metadata = fetch_metadata(*self._plan.lab_client_address(node), timeout_s=PROBE_S)
            except OSError as error:
                return f"{node} does not answer clients: {error}"
            listed_nodes = {f"b{number}" for number in metadata.brokers}
            if listed_nodes != registered or f"b{metadata.controller}" not in registered:
                return (
                    f"{node} lists only {', '.join(sorted(listed_nodes)) or 'no broker'} to clients"
                )
        return ""

    def _servers(self) -> list[tuple[str, int]]:
        """Addresses of the ZooKeeper servers that run."""
        alive = [node for node in self.zookeepers if self._runtime.is_alive(node)]
        return [self._plan.direct_address(node) for node in alive]

    def _store_registration(self, node: str) -> None:
        """Store the registration that an ending node leaves behind, to recognise its next one."""
        if node in self.brokers:
            self._registered_as[node] = self._state.registered_brokers().get(node, -1)

    def _describe_own_znode(self, node: str) -> str:
        exists = node in self._state.registered_brokers()
        return f"the znode of {node} still exists" if exists else ""

    def _describe_not_serving(self, node: str) -> str:
        if node in self.metadata_nodes:
            return self._describe_silence(node)
        registered = self._state.registered_brokers()
        number, before = registered.get(node), self._registered_as.get(node)
        if node not in registered or (number is not None and number == before):
            return f"{node} did not register"
        return self._describe_silence(node)

    def _describe_unhealthy(self) -> str:
        """The first problem of the cluster; empty if it is healthy."""
        for node in self.nodes:
            if self._runtime.status(node).state is not NodeState.RUNNING:
                return f"{node} is {self._runtime.status(node).state.value}"
        if problem := self.describe_missing_members():
            return problem
        for topic in self._state.topics():
            for view in self._state.partitions(topic):
                if view.leader is None:
                    return f"{topic}-{view.partition} has no leader"
                if set(view.isr) != set(view.replicas):
                    return f"{topic}-{view.partition} has only {', '.join(view.isr)} in sync"
        return next(filter(None, map(self._describe_silence, self.nodes)), "")

    def _describe_silence(self, node: str) -> str:
        """The reason for which a node does not answer directly; empty if it does."""
        address = self._plan.direct_address(node)
        if node in self.zookeepers:
            serves = zookeeper_serves(*address, timeout_s=PROBE_S)
            return "" if serves else f"{node} does not serve"
        try:
            probe_broker(*address, timeout_s=PROBE_S)
        except OSError as error:
            return f"{node} does not answer: {error}"
        return ""

    def _await_no_problem(
        self, describe: Callable[[], str], deadline: float, node: str = ""
    ) -> None:
        """Wait until no problem is described; NotHealthy on the deadline or when `node` ends."""

        def read() -> str:
            try:
                return describe()
            except LabFailure as error:  # ZooKeeper may be unreachable for a while
                return str(error)

        def is_over(problem: str) -> bool:
            return not problem or bool(node and not self._runtime.is_alive(node))

        deadline_s = deadline - time.monotonic()
        problem = until(read, is_over, deadline_s=deadline_s, poll_s=POLL_S)
        if problem and node and not self._runtime.is_alive(node):
            code = self._runtime.status(node).exit_code
            raise NotHealthy(f"{node} ended with {code} while it started")
        if problem:
            raise NotHealthy(problem)
