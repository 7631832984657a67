"""The life of a cluster: plan, files, processes, readiness by requests, stop."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import not_
from pathlib import Path
from types import TracebackType

from kazoo.client import KazooClient

from urteil.chaos.capabilities import missing_capabilities
from urteil.chaos.flushed_files import kept_files
from urteil.chaos.link_probes import zookeeper_serves
from urteil.chaos.links import Links
from urteil.chaos.observations import LabFailure, NodeState, NotHealthy
from urteil.chaos.parallel import run_on_all
from urteil.chaos.topology import node_id
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
from urteil.harness.cluster.quorum_state import quorum_state
from urteil.harness.cluster.releases import ClusterReleases, newest_kind
from urteil.harness.cluster.toxiproxy_nodes import Toxiproxies
from urteil.harness.cluster.zookeeper_state import ZooKeeperState
from urteil.harness.dependencies.flush_recorder import RECORD_VARIABLE, flush_recorder
from urteil.harness.dependencies.inventory import describe_required
from urteil.harness.dependencies.kafka_releases import parse_version
from urteil.harness.evidence.journal import CLOCKS_SET
from urteil.harness.evidence.readers.metadata_log import FOLDER
from urteil.harness.protocol.served_versions import common_versions
from urteil.harness.racks import rack_properties
from urteil.harness.runtimes import open_runtime
from urteil.harness.runtimes.disks import flush_record
from urteil.harness.runtimes.runtime import NodeSpec
from urteil.harness.scenario import DYNAMIC, ClusterSpec
from urteil.harness.stack_dumps import DumpSource
from urteil.harness.targets import BrokerNode, Mix, Target
from urteil.harness.targets.mix import kinds_of
from urteil.harness.targets.target import (
    ADVERTISED,
    BROKER_ROLE,
    CONTROLLER_ROLE,
    USERS_PORT,
    common_properties,
    render,
    replication_properties,
    user_properties,
)

READY_DEADLINE_S = 90.0
STOP_DEADLINE_S = 15.0
NOWHERE = ("", 0)
"""The address for clients of a node that is not a broker."""
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
        self._records_flushes = spec.records_flushes and runtime == "process"
        if self._records_flushes:
            flush_recorder()  # compiled where it is missing, before anything runs
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
        self.nodes = {name: self._kafka_node(name) for name in self.plan.brokers}
        self._controllers = {name: self._kafka_node(name) for name in self.plan.controllers}
        self.kinds = dict(zip(self.nodes, kinds, strict=True))
        self.kinds |= dict.fromkeys(self._controllers, kinds[0])
        self.state: ClusterState = self._open_state()
        self.releases = ClusterReleases(
            self._kafka_nodes, self.kinds, self.spec, self._write_broker
        )
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
            clocks=self._clocks(),
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
        return self.run_dir / "nodes" / node

    def data_dirs(self) -> dict[int, Path]:
        """Log directory of every broker by id."""
        return {node.broker_id: self.node_dir(node.name) / "data" for node in self.nodes.values()}

    def log_dirs(self, node: str) -> list[Path]:
        """The log directories of a broker: `data/` itself, or `data/disk1`, `data/disk2` ...; a
        controller of its own has one."""
        data = self.node_dir(node) / "data"
        count = self.spec.log_dirs if node in self.nodes else 1
        return [data / f"disk{n}" for n in range(1, count + 1)] if count > 1 else [data]

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
        self._write_broker(self.nodes[node])

    def start(self, *, deadline_s: float = READY_DEADLINE_S) -> float:
        """Start everything at once, and wait until every broker is registered and one is
        controller. Returns the seconds. Raises NotHealthy, with the end of the log of a node that
        did not become ready."""
        for node in self._controls.nodes:
            self._argv(node)  # installs or sends what is missing, before the clock runs
        for name, kind in self.releases.newest.items():
            kind.argv(self._kafka_nodes[name], self.runtime.programs, self.launcher)
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
            for node in self._kafka_nodes.values():
                kept = kept_files(flush_record(self.log_dirs(node.name)))
                for folder in (self._temporary(node), kept):
                    shutil.rmtree(folder, ignore_errors=True)

    @property
    def _kafka_nodes(self) -> dict[str, BrokerNode]:
        return self.nodes | self._controllers

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

    def _clocks(self) -> Clocks | None:
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

    def _kafka_node(self, name: str) -> BrokerNode:
        is_broker, ports = name in self.plan.brokers, self.plan.ports_at(name)
        has_role = {BROKER_ROLE: is_broker, CONTROLLER_ROLE: name in self.plan.voters}
        return BrokerNode(
            name=name,
            broker_id=node_id(name),
            roles=tuple(role for role, has in has_role.items() if has),
            home=self.runtime.home(self.node_dir(name)),
            address=self.plan.address(name),
            internal_port=ports.internal,
            client_port=ports.client,
            for_clients=self.plan.lab_client_address(name) if is_broker else NOWHERE,
            metrics=self.plan.metrics_listen(name),
            zookeeper_connect=self.plan.zookeeper_connect(),
            quorum_voters=self.plan.quorum_voters(),
            has_dynamic_quorum=self._has_dynamic_quorum,
            controller_port=ports.controller,
            further=self.access.listeners(self.plan, name) if is_broker else (),
        )

    def _write_files(self) -> None:
        for name in self.plan.zookeepers:
            directory = self.node_dir(name)
            write_zookeeper(self.plan, name, directory, self.runtime.home(directory))
        for node in self._kafka_nodes.values():
            self._write_broker(node)

    def properties(self, node: BrokerNode) -> dict[str, str]:
        """The settings of the property file of a broker or of a controller of its own. A controller
        reads those of new topics and of elections."""
        directory, kind = self.node_dir(node.name), self.kinds[node.name]
        homes = [node.home / log_dir.relative_to(directory) for log_dir in self.log_dirs(node.name)]
        settings = {
            **common_properties(node),
            "log.dirs": ",".join(map(str, homes)),
            **replication_properties(len(self.nodes)),
            **(user_properties(node) if self.spec.users else {}),
            **(rack_properties(node.broker_id) if self.spec.racks else {}),
            **kind.properties(node),
            **(self.access.properties(node) if node.name in self.nodes else {}),
            **self.spec.config,
            **self.releases.properties(node.name),
        }
        if not settings[ADVERTISED]:  # a controller of a release that advertises none
            del settings[ADVERTISED]
        known = {name: value for name, value in settings.items() if kind.knows_setting(name)}
        return {name: kind.translate_class(value) for name, value in known.items()}

    def _write_broker(self, node: BrokerNode) -> None:
        directory, kind = self.node_dir(node.name), self.kinds[node.name]
        for log_dir in self.log_dirs(node.name):
            log_dir.mkdir(parents=True, exist_ok=True)
        files = {
            node.hosts_file.name: self.plan.hosts_file(node.name),
            node.properties_file.name: render(self.properties(node)),
            **kind.files(node),
        }
        for name, text in files.items():
            (directory / name).write_text(text)
        for name, content in self.access.files(node).items():
            (directory / name).write_bytes(content)

    def _temporary(self, node: BrokerNode) -> Path:
        return self.node_dir(node.name) / node.temporary.relative_to(node.home)

    def _start_node(self, name: str) -> None:
        node = self._kafka_nodes.get(name)
        env = self.kinds[name].env(node) if node else {}
        if node:
            temporary = self._temporary(node)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(exist_ok=True)
            former_starts = self.runtime.status(name).starts
            for log_dir in self.log_dirs(name):
                self.kinds[name].format(node, log_dir, former_starts=former_starts)
            env |= self._library_environment(node)
        image = self.kinds[name].image if node else None
        spec = NodeSpec(argv=self._argv(name), env=env, cwd=self.node_dir(name), image=image)
        self.runtime.start(name, spec)

    def _library_environment(self, node: BrokerNode) -> dict[str, str]:
        """The environment that loads the lab's libraries into a broker or a controller."""
        clocks, env = self.runtime.false_clocks, dict[str, str]()
        if self.spec.own_clocks and clocks is not None:
            env = clocks.env(self.node_dir(node.name), node.home)
        if not self._records_flushes:
            return env
        libraries = [str(flush_recorder()), *filter(None, [env.get("LD_PRELOAD")])]
        record = flush_record(self.log_dirs(node.name))
        record.touch()
        return env | {"LD_PRELOAD": ":".join(libraries), RECORD_VARIABLE: str(record)}

    def _lost_session(self, name: str) -> bool:
        """Whether a broker ended because its session expired before it was registered."""
        message = self.kinds[name].lost_session if name in self.kinds else ""
        return bool(message) and not self.runtime.is_alive(name) and message in self.log_tail(name)

    def _argv(self, name: str) -> list[str]:
        programs = self.runtime.programs
        if node := self._kafka_nodes.get(name):
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
    if spec.users or (access is not None and access.is_seeded):
        raise ValueError("users and ACLs of the lab need ZooKeeper: take --target kafka")
