"""The life of a cluster: plan, processes, readiness by requests, stop."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import not_
from pathlib import Path
from types import TracebackType

from kazoo.client import KazooClient

from urteil.chaos.capabilities import missing_capabilities
from urteil.chaos.link_probes import zookeeper_serves
from urteil.chaos.links import Links
from urteil.chaos.observations import LabFailure, NodeState, NotHealthy
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until
from urteil.harness.clients.processes import ClientPlace
from urteil.harness.cluster.access import Access
from urteil.harness.cluster.administration.act_log import ActLog
from urteil.harness.cluster.administration.admin_acts import AdminActs
from urteil.harness.cluster.administration.voter_acts import VoterActs
from urteil.harness.cluster.clocks import Clocks
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.cluster.controls import ClusterControls
from urteil.harness.cluster.ensemble import write_zookeeper, zookeeper_argv
from urteil.harness.cluster.node_files import NodeFiles
from urteil.harness.cluster.quorum_state import quorum_state
from urteil.harness.cluster.releases import ClusterReleases, newest_kind
from urteil.harness.cluster.toxiproxy_nodes import Toxiproxies
from urteil.harness.cluster.zookeeper_state import ZooKeeperState
from urteil.harness.dependencies.inventory import describe_required
from urteil.harness.dependencies.kafka_releases import parse_version
from urteil.harness.evidence.journal import CLOCKS_SET
from urteil.harness.evidence.readers.metadata_log import FOLDER
from urteil.harness.protocol.served_versions import common_versions
from urteil.harness.runtimes import open_runtime
from urteil.harness.runtimes.runtime import NodeSpec
from urteil.harness.scenario import DYNAMIC, ClusterSpec
from urteil.harness.stack_dumps import DumpSource
from urteil.harness.targets import BrokerNode, Mix, Target
from urteil.harness.targets.mix import kinds_of
from urteil.harness.targets.target import (
    USERS_PORT,
)

READY_DEADLINE_S = 90.0
STOP_DEADLINE_S = 15.0
POLL_S = 0.05
LOG_TAIL_LINES = 15


class Cluster:
    """Brokers of one target or a mix with their metadata nodes and Toxiproxies, in one run's
    folder.

    `with Cluster(spec, target, run_dir) as cluster:` starts it and ends it. It ends with the
    process that owns it.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        target: Target | Mix,
        run_dir: Path,
        *,
        launcher: Sequence[str] = (),
        runtime: str = "process",
        hosts: str = "",
        client_hosts: Sequence[str] = (),
        access: Access | None = None,
    ) -> None:
        """`access` has the listeners for users; by default there are none. `hosts` is the
        inventory of the runtime ssh, of which `client_hosts` run the lab's clients. `launcher` is a
        module with its arguments that changes our broker before it starts.

        Raises ValueError for a mix with another number of brokers than the cluster, and for
        features that the runtime lacks.
        """
        kinds = kinds_of(target, spec.brokers)
        if spec.own_clocks and runtime == "docker":
            raise ValueError(
                "brokers in containers have no clocks of their own: --runtime process or ssh"
            )
        self.has_zookeeper = all(kind.has_zookeeper for kind in kinds)
        if not self.has_zookeeper:
            _check_without_zookeeper(spec, runtime, access)
        if spec.users and runtime != "process":
            raise ValueError("the listener for users is a process's: --runtime process")
        self.spec = spec
        self.access = access or Access()
        self.run_dir = run_dir.resolve()
        self.launcher = launcher
        self.ready_s = 0.0
        self.runtime = open_runtime(
            runtime,
            self.run_dir,
            images=[kind.image for kind in kinds],
            zookeepers=spec.zookeepers if self.has_zookeeper else 0,
            controllers=0 if self.has_zookeeper else spec.controllers,
            later=[kind.previous_release().image for kind in kinds] if spec.older else [],
            layout=self.access.layout,
            hosts=hosts,
            client_hosts=client_hosts,
        )
        self.clients_elsewhere: ClientPlace | None = self.runtime.clients_elsewhere
        self.plan = self.runtime.plan
        self.links = Links(self.plan, Toxiproxies(self.runtime, self.run_dir))
        self.kinds = dict(zip(self.plan.brokers, kinds, strict=True))
        self.kinds |= dict.fromkeys(self.plan.controllers, kinds[0])
        self._files = NodeFiles(
            spec,
            self.runtime,
            self.access,
            self.run_dir,
            self.kinds,
            has_dynamic_quorum=self._has_dynamic_quorum,
            records_flushes=spec.records_flushes and runtime == "process",
        )
        self.nodes = self._files.brokers
        self.state: ClusterState = self._open_state()
        self._clocks = self._open_clocks()
        self.releases = ClusterReleases(self._files.nodes, self.kinds, self.spec, self._write_node)
        self._controls = ClusterControls(
            plan=self.plan,
            runtime=self.runtime,
            links=self.links,
            state=self.state,
            admin=AdminActs(self.plan.bootstrap, self.state, ActLog(self.run_dir), self.releases),
            start_node=self._start_node,
            waits_for_own_znode=lambda node: self.kinds[node].waits_for_own_znode,
            lost_session=self._lost_session,
            log_dirs=self.log_dirs,
            clocks=self._clocks,
            quorum=self._voter_acts() if self._has_dynamic_quorum else None,
        )

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.close()

    @property
    def bootstrap(self) -> list[str]:
        """The brokers' addresses for clients, through the clients' Toxiproxy."""
        return self.plan.bootstrap()

    @property
    def wan_bootstrap(self) -> list[str]:
        """The brokers' addresses for applications at the other cluster of the run, if any."""
        return self.plan.wan_bootstrap()

    @property
    def user_listeners(self) -> list[str]:
        """The brokers' listeners for users, past all proxies, by id. Empty unless requested."""
        if not self.spec.users:
            return []
        return [f"{node.address}:{USERS_PORT}" for node in self.nodes.values()]

    @property
    def metrics(self) -> list[str]:
        """The brokers' metrics endpoints, `host:port`. Empty for brokers without one."""
        names = [name for name in self.nodes if self.kinds[name].shows_metrics]
        return ["{}:{}".format(*self.plan.metrics(node)) for node in names]

    @property
    def zk(self) -> KazooClient:
        """A ZooKeeper session of the lab, past all proxies."""
        return self.state.client

    def controls(self) -> ClusterControls:
        """The controls through which chaos acts on this cluster."""
        return self._controls

    def await_healthy(self, *, deadline_s: float) -> float:
        """As `chaos.controls.Controls.await_healthy`."""
        return self._controls.await_healthy(deadline_s=deadline_s)

    def can_restart(self) -> bool:
        """Whether every broker can be stopped and started."""
        return True

    def node_dir(self, node: str) -> Path:
        """The folder of a node's files: `nodes/<node>` of the run, with data in `data/`."""
        return self._files.folder(node)

    def data_dirs(self) -> dict[int, Path]:
        """Log directory of every broker by id."""
        return {node.broker_id: self.node_dir(node.name) / "data" for node in self.nodes.values()}

    def log_dirs(self, node: str) -> list[Path]:
        """As `NodeFiles.log_dirs`."""
        return self._files.log_dirs(node)

    def topic_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """A topic's settings with the names of the brokers' release."""
        kind = next(iter(self.kinds.values()))
        return {kind.topic_setting(name, value): value for name, value in config.items()}

    def missing_tables(self) -> list[str]:
        """Evidence tables that the cluster cannot provide: none."""
        return []

    def missing_capabilities(self) -> list[str]:
        """Capabilities that the running brokers lack (chaos/capabilities.py). `state` respects them
        from now on."""
        direct = ["{}:{}".format(*self.plan.direct_address(node)) for node in self.plan.brokers]
        lacks = missing_capabilities(common_versions(direct))
        self.state.lacks = frozenset(lacks)
        return lacks

    def versions(self) -> dict[str, str]:
        """Versions of the brokers and of the dependencies that the cluster runs on. Several
        versions of a kind of broker are in order, the newest last; those of a later upgrade are
        among them."""
        kinds = [*self.kinds.values(), *self.releases.newest.values()]
        releases = sorted(
            {(kind.name, kind.version) for kind in kinds}, key=lambda kind: parse_version(kind[1])
        )
        brokers = {
            name: ", ".join(version for kind, version in releases if kind == name)
            for name, _ in releases
        }
        versions = {part.name: part.version for part in describe_required()}
        return {**brokers, **versions}

    def become(self, node: str, kind: Target) -> None:
        """Set the kind of a broker from its next start on. It keeps the log directories.

        Only for runtimes whose nodes may change their program, as processes may.
        """
        self.kinds[node] = kind
        self._write_node(self.nodes[node])

    def start(self, *, deadline_s: float = READY_DEADLINE_S) -> float:
        """Start everything at once, and wait until every broker is registered and one is
        controller. Returns the seconds. Raises NotHealthy, with the end of the log of a node that
        did not become ready."""
        for node in self._controls.nodes:
            self._argv(node)  # installs or sends what is missing, before the clock runs
        for name, kind in self.releases.newest.items():
            kind.argv(self._files.nodes[name], self.runtime.programs, self.launcher)
        began = time.monotonic()
        self._write_files()
        for node in self.plan.metadata_nodes:
            self._start_node(node)
        # A proxy accepts before the server behind it does, and closes then or leaves the client
        # waiting: so brokers are refused until ZooKeeper serves.
        early = [
            link
            for link in self.links.links()
            if link.dst in self.plan.zookeepers and link.src in self.plan.brokers
        ]
        self.links.start(closed=early)
        # An election needs an idle machine.
        if len(self.plan.zookeepers) > 1 or self.access.is_seeded:
            self._await_zookeepers(began + deadline_s)
        if self.access.is_seeded:
            self.state.start(deadline_s=max(1.0, began + deadline_s - time.monotonic()))
            self.access.seed(self.state.client)
        for node in self.plan.brokers:
            self._start_node(node)
        self._await_zookeepers(began + deadline_s)
        self.links.heal(early)
        self._await_ready(began + deadline_s)
        self.ready_s = self.runtime.opening_s + time.monotonic() - began
        return self.ready_s

    def dump_sources(self) -> list[DumpSource]:
        """The brokers and metadata nodes that run on this machine, for stack dumps."""
        sources = []
        for node in (*self.plan.brokers, *self.plan.metadata_nodes):
            with contextlib.suppress(LabFailure):  # dead, or on another machine
                sources.append(self._dump_source(node))
        return sources

    def _dump_source(self, node: str) -> DumpSource:
        pid = self.runtime.local_pid(node)
        return DumpSource(name=node, pid=pid, output=partial(self.runtime.log, node))

    def stop(self, *, deadline_s: float = STOP_DEADLINE_S) -> None:
        """SIGTERM to all brokers at once, SIGKILL after the deadline, then the rest."""
        try:
            alive = [node for node in self.plan.brokers if self.runtime.is_alive(node)]
            run_on_all(lambda node: self.runtime.stop(node, deadline_s=deadline_s), alive)
        finally:
            self.close()

    def close(self) -> None:
        """End everything now. Repeatable."""
        try:
            self.state.close()
        finally:
            self.runtime.close()
            self._files.remove_temporary()

    def _open_state(self) -> ClusterState:
        if self.has_zookeeper:
            return ZooKeeperState(self.plan.zookeeper_direct())
        version = newest_kind(self.kinds.values()).version
        return quorum_state(self.metadata_logs, version, self.run_dir)

    def metadata_logs(self) -> dict[str, Path]:
        """The metadata logs of the quorum's voters, as the lab reads them while nodes run."""
        return {
            node: self.runtime.readable_folder(node, self.log_dirs(node)[0] / FOLDER)
            for node in self.plan.voters
        }

    @property
    def _has_dynamic_quorum(self) -> bool:
        return not self.has_zookeeper and self.spec.quorum == DYNAMIC

    def _voter_acts(self) -> VoterActs:
        return VoterActs(
            version=newest_kind(self.kinds.values()).version,
            state=self.state,
            acts=ActLog(self.run_dir),
            direct_address=self.plan.quorum_address,
            listener=lambda node: (node, self.plan.ports_at(node).controller),
            metadata_log=lambda node: self.metadata_logs()[node],
        )

    def _open_clocks(self) -> Clocks | None:
        clocks = self.runtime.false_clocks
        if not self.spec.own_clocks or clocks is None:
            return None
        clocks.library()  # installed where it is missing, before anything runs
        return Clocks(
            clocks,
            lambda: self.bootstrap,
            self.plan.brokers,
            self._dump_source,
            self.run_dir / CLOCKS_SET,
        )

    def _write_files(self) -> None:
        for name in self.plan.zookeepers:
            directory = self.node_dir(name)
            write_zookeeper(self.plan, name, directory, self.runtime.home(directory))
        for node in self._files.nodes.values():
            self._write_node(node)

    def properties(self, node: BrokerNode) -> dict[str, str]:
        """As `NodeFiles.properties`, with those of its release."""
        return self._files.properties(node, self.releases.properties(node.name))

    def _write_node(self, node: BrokerNode) -> None:
        self._files.write(node, self.releases.properties(node.name))

    def _start_node(self, name: str) -> None:
        node = self._files.nodes.get(name)
        env = self._files.prepare_start(node) if node else {}
        image = self.kinds[name].image if node else None
        spec = NodeSpec(argv=self._argv(name), env=env, cwd=self.node_dir(name), image=image)
        if self._clocks is not None:
            self._clocks.note_start(name)
        self.runtime.start(name, spec)

    def _lost_session(self, name: str) -> bool:
        """Whether a broker ended because its session expired before it was registered."""
        message = self.kinds[name].lost_session if name in self.kinds else ""
        return bool(message) and not self.runtime.is_alive(name) and message in self.log_tail(name)

    def _argv(self, name: str) -> list[str]:
        programs = self.runtime.programs
        if node := self._files.nodes.get(name):
            return self.kinds[name].argv(node, programs, self.launcher)
        return zookeeper_argv(programs, self.runtime.home(self.node_dir(name)))

    def _await_zookeepers(self, deadline: float) -> None:
        for node in self.plan.zookeepers:
            self._await_no_problem(partial(self._describe_zookeeper, node), deadline)

    def _await_ready(self, deadline: float) -> None:
        if not self.access.is_seeded:
            try:
                self.state.start(deadline_s=max(1.0, deadline - time.monotonic()))
            except LabFailure:
                self._check_nodes()
                raise
        controls = self._controls
        self._await_no_problem(
            lambda: controls.describe_missing_members() or controls.describe_missing_in_metadata(),
            deadline,
        )

    def _describe_zookeeper(self, node: str) -> str:
        serves = zookeeper_serves(*self.plan.direct_address(node), timeout_s=1.0)
        return "" if serves else f"{node} does not serve"

    def _await_no_problem(self, describe: Callable[[], str], deadline: float) -> None:
        """Wait until no problem is described. NotHealthy when a node ends, and at the deadline."""

        def read() -> str:
            if problem := describe():
                self._check_nodes()
            return problem

        deadline_s = deadline - time.monotonic()
        if problem := until(read, not_, deadline_s=deadline_s, poll_s=POLL_S):
            nodes = (*self.plan.controllers, *self.plan.brokers)
            tails = "\n".join(map(self.log_tail, nodes))
            raise NotHealthy(f"not ready in time: {problem}\n{tails}")

    def _check_nodes(self) -> None:
        """Restart a node that lost its session during its start. NotHealthy if another ended."""
        for node in self._controls.nodes:
            status = self.runtime.status(node)
            if status.state is NodeState.DEAD and status.starts == 1 and self._lost_session(node):
                self._start_node(node)
            elif status.state is NodeState.DEAD and status.starts:
                raise NotHealthy(f"{node} ended with {status.exit_code}:\n{self.log_tail(node)}")

    def log_tail(self, node: str, lines: int = LOG_TAIL_LINES) -> str:
        """The last lines of a node's log."""
        return f"--- {node}.log\n" + "\n".join(self.runtime.log(node).splitlines()[-lines:])


def _check_without_zookeeper(spec: ClusterSpec, runtime: str, access: Access | None) -> None:
    """Raise ValueError for a feature that is not supported without ZooKeeper."""
    if spec.quorum == DYNAMIC and runtime == "ssh":
        raise ValueError("the voters of a quorum on hosts are static: leave --quorum out")
    if spec.own_clocks and spec.controllers and runtime == "ssh":
        raise ValueError("clocks of controllers with nodes of their own need --runtime process")
    if spec.users or (access is not None and access.is_seeded):
        raise ValueError("users and ACLs of the lab need ZooKeeper: take --target kafka")
