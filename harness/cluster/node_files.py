"""The files of a cluster's Kafka nodes, and the environment in which they start."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from urteil.chaos.flushed_files import kept_files
from urteil.chaos.topology import node_id
from urteil.harness.cluster.access import Access
from urteil.harness.dependencies.flush_recorder import RECORD_VARIABLE, flush_recorder
from urteil.harness.racks import rack_properties
from urteil.harness.runtimes.disks import flush_record
from urteil.harness.runtimes.runtime import Runtime
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import BrokerNode, Target
from urteil.harness.targets.target import (
    ADVERTISED,
    BROKER_ROLE,
    CONTROLLER_ROLE,
    common_properties,
    render,
    replication_properties,
    user_properties,
)

NOWHERE = ("", 0)
"""The address for clients of a node that is not a broker."""


class NodeFiles:
    """The nodes of `runtime` with their folders in `run_dir`. `kinds` may change while nodes are
    down. With `records_flushes` the lab records what nodes flush."""

    def __init__(
        self,
        spec: ClusterSpec,
        runtime: Runtime,
        access: Access,
        run_dir: Path,
        kinds: Mapping[str, Target],
        *,
        has_dynamic_quorum: bool,
        records_flushes: bool,
    ) -> None:
        self._spec = spec
        self._runtime = runtime
        self._plan = runtime.plan
        self._access = access
        self._run_dir = run_dir
        self._kinds = kinds
        self._has_dynamic_quorum = has_dynamic_quorum
        self._records_flushes = records_flushes
        self.brokers = {name: self._node(name) for name in self._plan.brokers}
        self.controllers = {name: self._node(name) for name in self._plan.controllers}
        self.nodes = self.brokers | self.controllers
        if records_flushes:
            flush_recorder()  # compiled where it is missing, before anything runs

    def folder(self, node: str) -> Path:
        """`nodes/<node>` of the run, with data in `data/`."""
        return self._run_dir / "nodes" / node

    def log_dirs(self, node: str) -> list[Path]:
        """The log directories of a broker: `data/` itself, or `data/disk1`, `data/disk2` ...; a
        controller of its own has one."""
        data = self.folder(node) / "data"
        count = self._spec.log_dirs if node in self._plan.brokers else 1
        return [data / f"disk{n}" for n in range(1, count + 1)] if count > 1 else [data]

    def properties(self, node: BrokerNode, further: Mapping[str, str]) -> dict[str, str]:
        """The settings of the property file of a broker or of a controller of its own, `further`
        ones last. A controller reads those of new topics and of elections."""
        directory, kind = self.folder(node.name), self._kinds[node.name]
        homes = [node.home / log_dir.relative_to(directory) for log_dir in self.log_dirs(node.name)]
        settings = {
            **common_properties(node),
            "log.dirs": ",".join(map(str, homes)),
            **replication_properties(len(self.brokers)),
            **(user_properties(node) if self._spec.users else {}),
            **(rack_properties(node.broker_id) if self._spec.racks else {}),
            **kind.properties(node),
            **(self._access.properties(node) if node.name in self.brokers else {}),
            **self._spec.config,
            **further,
        }
        if not settings[ADVERTISED]:  # a controller of a release that advertises none
            del settings[ADVERTISED]
        known = {name: value for name, value in settings.items() if kind.knows_setting(name)}
        return {name: kind.translate_class(value) for name, value in known.items()}

    def write(self, node: BrokerNode, further: Mapping[str, str]) -> None:
        """Write the files of a node, with these settings in addition, and create its log
        directories."""
        directory, kind = self.folder(node.name), self._kinds[node.name]
        for log_dir in self.log_dirs(node.name):
            log_dir.mkdir(parents=True, exist_ok=True)
        files = {
            node.hosts_file.name: self._plan.hosts_file(node.name),
            node.properties_file.name: render(self.properties(node, further)),
            **kind.files(node),
        }
        for name, text in files.items():
            (directory / name).write_text(text)
        for name, content in self._access.files(node).items():
            (directory / name).write_bytes(content)

    def prepare_start(self, node: BrokerNode) -> dict[str, str]:
        """Empty the node's temporary folder and format its log directories if needed. Returns the
        environment of its process."""
        temporary, kind = self._temporary(node), self._kinds[node.name]
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(exist_ok=True)
        former_starts = self._runtime.status(node.name).starts
        for log_dir in self.log_dirs(node.name):
            kind.format(node, log_dir, former_starts=former_starts)
        return kind.env(node) | self._library_environment(node)

    def remove_temporary(self) -> None:
        """Remove temporary folders, and what only a power cut needs."""
        for node in self.nodes.values():
            kept = kept_files(flush_record(self.log_dirs(node.name)))
            for folder in (self._temporary(node), kept):
                shutil.rmtree(folder, ignore_errors=True)

    def _library_environment(self, node: BrokerNode) -> dict[str, str]:
        """The environment that loads the lab's libraries into a broker or a controller."""
        clocks, env = self._runtime.false_clocks, dict[str, str]()
        if self._spec.own_clocks and clocks is not None:
            env = clocks.env(self.folder(node.name), node.home)
        if not self._records_flushes:
            return env
        libraries = [str(flush_recorder()), *filter(None, [env.get("LD_PRELOAD")])]
        record = flush_record(self.log_dirs(node.name))
        record.touch()
        return env | {"LD_PRELOAD": ":".join(libraries), RECORD_VARIABLE: str(record)}

    def _temporary(self, node: BrokerNode) -> Path:
        return self.folder(node.name) / node.temporary.relative_to(node.home)

    def _node(self, name: str) -> BrokerNode:
        plan = self._plan
        is_broker, ports = name in plan.brokers, plan.ports_at(name)
        has_role = {BROKER_ROLE: is_broker, CONTROLLER_ROLE: name in plan.voters}
        return BrokerNode(
            name=name,
            broker_id=node_id(name),
            roles=tuple(role for role, has in has_role.items() if has),
            home=self._runtime.home(self.folder(name)),
            address=plan.address(name),
            internal_port=ports.internal,
            client_port=ports.client,
            for_clients=plan.lab_client_address(name) if is_broker else NOWHERE,
            metrics=plan.metrics_listen(name),
            zookeeper_connect=plan.zookeeper_connect(),
            quorum_voters=plan.quorum_voters(),
            has_dynamic_quorum=self._has_dynamic_quorum,
            controller_port=ports.controller,
            further=self._access.listeners(plan, name) if is_broker else (),
        )
