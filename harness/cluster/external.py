"""An external cluster: its faults act by the file's commands and by its own Toxiproxies."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import not_
from pathlib import Path

from urteil.chaos.capabilities import missing_capabilities
from urteil.chaos.controls import ContainerControls, DiskControls
from urteil.chaos.links import Links
from urteil.chaos.observations import (
    CLIENT,
    LabFailure,
    Limits,
    Link,
    NodeState,
    NodeStatus,
    NotHealthy,
)
from urteil.chaos.packet_controls import PacketControls
from urteil.chaos.parallel import run_on_all
from urteil.chaos.topology import Address, Plan, Ports, ProxyPlan
from urteil.chaos.waiting import until
from urteil.harness.clients.processes import ClientPlace
from urteil.harness.cluster.administration.act_log import ActLog
from urteil.harness.cluster.administration.admin_acts import AdminActs
from urteil.harness.cluster.administration.release_acts import Releases
from urteil.harness.cluster.answered_state import AnsweredState
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.cluster.controls import ClusterControls
from urteil.harness.cluster.guard import Guard
from urteil.harness.cluster.zookeeper_state import ZooKeeperState
from urteil.harness.protocol.served_versions import common_versions
from urteil.harness.reaper import VARIABLE, start_reaper
from urteil.harness.stack_dumps import DumpSource
from urteil.harness.targets.external import ExternalFile, load_external

READY_DEADLINE_S = 60.0
COMMAND_DEADLINE_S = 60.0
POLL_S = 0.1
STATES = {"running": NodeState.RUNNING, "paused": NodeState.PAUSED}
NO_PORTS = Ports(internal=0, client=0, zookeeper=0, peer=0, election=0, toxiproxy=0, metrics=0)


class ExternalPlan(Plan):
    """The addresses in the file. The lab does not know the addresses that nodes use among
    themselves."""

    def __init__(self, file: ExternalFile) -> None:
        brokers = tuple(sorted((node for node in file.nodes if node[0] == "b"), key=_number))
        zookeepers = tuple(sorted((node for node in file.nodes if node[0] == "z"), key=_number))
        controllers = tuple(sorted((node for node in file.nodes if node[0] == "q"), key=_number))
        super().__init__(NO_PORTS, brokers=max(1, len(brokers)), zookeepers=max(1, len(zookeepers)))
        self._file = file
        self._links = {Link(link.src, link.dst): link for link in file.links}
        self.brokers, self.zookeepers, self.controllers = brokers, zookeepers, controllers
        self.nodes = tuple(dict.fromkeys(link.src for link in file.links))

    def address(self, node: str) -> str:
        return self.direct_address(node)[0]

    def address_from(self, src: str, dst: str) -> str:
        return self.link_address(Link(src, dst))[0]

    def toxiproxy_listens(self, node: str) -> Address:
        return next(_address(link.toxiproxy) for link in self._file.links if link.src == node)

    def direct_address(self, node: str) -> Address:
        return _address(self._file.nodes[node].direct)

    def link_address(self, link: Link) -> Address:
        return _address(self._links[link].probe)

    def client_address(self, broker: str, port: int) -> Address:
        link = self._links.get(Link(CLIENT, broker))
        return self.direct_address(broker) if link is None else _address(link.probe)

    def bootstrap(self) -> list[str]:
        return list(self._file.bootstrap)

    def zookeeper_direct(self) -> str:
        return self._file.zookeeper

    def links(self) -> tuple[Link, ...]:
        return tuple(self._links)

    def proxies(self, link: Link) -> tuple[ProxyPlan, ...]:
        return tuple(
            ProxyPlan(name=name, link=link, listen="", upstream="")
            for name in self._links[link].proxies
        )


class SlowCommand(LabFailure):
    """A command of the file did not end in time."""


class NodeCommands:
    """Nodes by the file's commands: the part of a runtime that `ClusterControls` needs.

    A node executes one command at a time: a start waits until a running stop has ended.
    """

    containers: ContainerControls | None = None
    packets: PacketControls | None = None

    def disks(self, log_dirs: Callable[[str], Sequence[Path]]) -> DiskControls | None:
        """None: the lab does not know the disks."""
        return None

    def __init__(
        self,
        path: Path,
        file: ExternalFile,
        announce: Callable[[str, str], None] = lambda _act, _node: None,
    ) -> None:
        """`announce` is called before a node is ended, paused, started or resumed."""
        self._announce = announce
        self._folder = path.resolve().parent
        self._nodes = file.nodes
        self._busy = {node: threading.RLock() for node in file.nodes}
        self._starts = dict.fromkeys(file.nodes, 1)
        self._ended_by_us: set[str] = set()
        self._paused_by_us: set[str] = set()

    def status(self, node: str) -> NodeStatus:
        """The state by the command `state`. A node without the command is never changed, and counts
        as running."""
        with self._lock_of(node):
            node_file = self._nodes[node]
            words = self.run(node, "state").split() if node_file.state else ["running"]
        if not words:
            raise LabFailure(f"the command state of {node} printed nothing: {node_file.state}")
        numbers = [int(word) for word in words[1:3] if word.lstrip("-").isdigit()]
        pid, code = [*numbers, 0, 0][:2]
        state = STATES.get(words[0], NodeState.DEAD)
        return NodeStatus(
            node=node,
            state=state,
            pid=pid or None,
            exit_code=(128 - code if code > 128 else code) if state is NodeState.DEAD else None,
            starts=self._starts[node],
        )

    def is_alive(self, node: str) -> bool:
        return self.status(node).state is not NodeState.DEAD

    def start(self, node: str) -> None:
        with self._lock_of(node):
            self._announce("start", node)
            self.run(node, "start")
            self._starts[node] += 1
            self._ended_by_us.discard(node)
            self._paused_by_us.discard(node)

    def kill(self, node: str) -> NodeStatus:
        return self._end(node, "kill", COMMAND_DEADLINE_S)

    def stop(self, node: str, *, deadline_s: float) -> NodeStatus:
        """Stop a node; after the deadline it is killed, if the file has a command for that."""
        if node in self.paused_by_us():
            self.resume(node)
        try:
            return self._end(node, "stop", deadline_s + COMMAND_DEADLINE_S)
        except SlowCommand:
            if not self._nodes[node].kill:
                raise
        return self.kill(node)

    def pause(self, node: str) -> NodeStatus:
        with self._lock_of(node):
            self._paused_by_us.add(node)
            self._announce("pause", node)
            self.run(node, "pause")
        return self.status(node)

    def resume(self, node: str) -> NodeStatus:
        with self._lock_of(node):
            self.run(node, "resume")
            self._paused_by_us.discard(node)
        return self.status(node)

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        with self._lock_of(node):
            if allowed:
                self._announce("end", node)
                self._ended_by_us.add(node)
            elif self.is_alive(node):
                self._ended_by_us.discard(node)

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        raise LabFailure(f"{node} cannot be throttled: the file has no command for it")

    def restore_cpu(self, node: str) -> Limits:
        return self.cpu_throttling(node)

    def cpu_throttling(self, node: str) -> Limits:
        return Limits(node=node, cpus=None, memory_mb=None)

    def local_pid(self, node: str) -> int:
        raise LabFailure(f"{node} is not the lab's: its process may be on any machine")

    def unexpected_ends(self) -> list[NodeStatus]:
        nodes = [node for node in self._nodes if node not in self._ended_by_us]
        states = run_on_all(self.status, nodes)
        return [state for state in states if state.state is NodeState.DEAD]

    def with_state(self) -> list[str]:
        """Nodes whose state can be read, and therefore restored."""
        return [node for node, node_file in self._nodes.items() if node_file.state]

    def paused_by_us(self) -> list[str]:
        """Nodes that we paused and neither resumed nor ended."""
        return sorted(self._paused_by_us - self._ended_by_us)

    def ended_by_us(self) -> list[str]:
        """Nodes that we ended and did not start again."""
        return sorted(self._ended_by_us)

    def run(
        self, node: str, name: str, deadline_s: float = COMMAND_DEADLINE_S, into: str = ""
    ) -> str:
        """Run a command and return its output. Raises LabFailure for a missing, failed or slow
        command.

        The command is detached from the lab: a node that it starts outlives the run, and Ctrl-C.
        """
        command: str = getattr(self._nodes[node], name)
        if not command:
            raise LabFailure(f"the file names no command {name} for {node}")
        argv = [word.replace("{into}", into) for word in shlex.split(command)]
        try:
            process = subprocess.run(
                argv,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if name == "log" else subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=deadline_s,
                env={key: value for key, value in os.environ.items() if key != VARIABLE},
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise SlowCommand(f"{name} of {node} failed: {error}") from error
        except OSError as error:
            raise LabFailure(f"{name} of {node} failed: {error}") from error
        if process.returncode != 0:
            last = (process.stderr or process.stdout).strip().splitlines()[-1:]
            raise LabFailure(f"{name} of {node} failed ({process.returncode}): {' '.join(last)}")
        return process.stdout

    def _lock_of(self, node: str) -> threading.RLock:
        """The lock of a node, held during each command. Raises LabFailure for an unknown node."""
        if node not in self._busy:
            raise LabFailure(f"the file names no node {node}")
        return self._busy[node]

    def _end(self, node: str, how: str, deadline_s: float) -> NodeStatus:
        with self._lock_of(node):
            if self.is_alive(node):
                self._ended_by_us.add(node)
                self._announce(how, node)
                self.run(node, how, deadline_s)
            return self.status(node)


class TheirToxiproxies:
    """Implements `chaos.links.Processes` for servers that run already and that the lab must not
    restart."""

    def start_toxiproxy(self, node: str, host: str, port: int, config: str) -> None:
        """Does nothing: `Links` checks for its proxies next."""

    def kill_toxiproxy(self, node: str) -> None:
        raise LabFailure(f"the Toxiproxy beside {node} hangs, and is not the lab's to restart")

    def toxiproxy_alive(self, node: str) -> bool:
        return True


class ExternalCluster:
    """Implements the cluster that `harness.run` needs.

    Nodes that our faults ended run again afterwards. Topics of the run stay.
    """

    def __init__(self, path: Path, run_dir: Path) -> None:
        """Raises ValueError for a file that `load_external` rejects."""
        self._file = load_external(path)
        self.run_dir = run_dir.resolve()
        self.plan = ExternalPlan(self._file)
        self.guard = Guard(path, self.run_dir)
        self.commands = NodeCommands(path, self._file, self.guard.announce)
        self.links = Links(self.plan, TheirToxiproxies())
        self.state: ClusterState = _open_state(self._file)
        self._controls = ClusterControls(
            plan=self.plan,
            runtime=self.commands,
            links=self.links,
            state=self.state,
            admin=AdminActs(self.plan.bootstrap, self.state, ActLog(self.run_dir), Releases()),
            start_node=self.commands.start,
            waits_for_own_znode=lambda node: bool(self._file.zookeeper),
            holds=self.guard,
        )
        self._in_use = False
        self._closed = False
        start_reaper()

    @property
    def clients_elsewhere(self) -> ClientPlace | None:
        """None: the lab's clients run on this machine."""
        return None

    @property
    def wan_bootstrap(self) -> list[str]:
        """None: a run with an external cluster has no other one."""
        return []

    @property
    def user_listeners(self) -> list[str]:
        """None: the lab added no listener there."""
        return []

    @property
    def bootstrap(self) -> list[str]:
        return self.plan.bootstrap()

    def controls(self) -> ClusterControls:
        return self._controls

    def can_restart(self) -> bool:
        """Whether every broker can be stopped and started."""
        nodes = [self._file.nodes[node] for node in self.plan.brokers]
        return bool(nodes) and all(node.stop and node.start for node in nodes)

    def data_dirs(self) -> dict[int, Path]:
        """The copied log directories by broker id, of brokers with a command `copy`."""
        return {
            _number(node): self._node_dir(node) / "data" for node in self._nodes_with_copies("b")
        }

    def topic_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """The settings unchanged."""
        return dict(config)

    def missing_tables(self) -> list[str]:
        """Evidence tables that are missing because the file has no command `copy`."""
        replicas = [] if self._nodes_with_copies("b") else ["replicas", "logs"]
        kinds = "z" if self._file.zookeeper else "bq"  # brokers of KRaft follow its log
        has_states = any(map(self._nodes_with_copies, kinds))
        return replicas if has_states else [*replicas, "states"]

    def missing_capabilities(self) -> list[str]:
        """Capabilities that the running brokers lack (chaos/capabilities.py). `state` respects them
        from now on."""
        lacks = missing_capabilities(common_versions(self.bootstrap))
        self.state.lacks = frozenset(lacks)
        return lacks

    def versions(self) -> dict[str, str]:
        return {"external": "whatever answers"}

    def start(self, *, deadline_s: float = READY_DEADLINE_S) -> float:
        """Wait until all brokers of the file are registered and its Toxiproxies have the links.

        Removes faults that were left on the links. Returns the seconds.
        """
        began = time.monotonic()
        self.state.start(deadline_s=deadline_s)
        self._in_use = True
        self.guard.start()
        self.links.heal_all()
        if problem := until(
            self._controls.describe_missing_members,
            not_,
            deadline_s=began + deadline_s - time.monotonic(),
            poll_s=POLL_S,
        ):
            raise NotHealthy(f"the cluster is not ready: {problem}")
        return time.monotonic() - began

    def dump_sources(self) -> list[DumpSource]:
        """None: its processes are not the lab's."""
        return []

    def stop(self) -> None:
        """Copy the nodes' log directories by the command `copy`.

        Brokers are stopped cleanly for that and started again.
        """
        brokers = self._nodes_with_copies("b")
        try:
            run_on_all(self._controls.stop, brokers)
            others = [*self._nodes_with_copies("z"), *self._nodes_with_copies("q")]
            run_on_all(self._copy, [*brokers, *others])
        finally:
            run_on_all(self._controls.start, brokers)
        self._logs()
        self.close()

    def close(self) -> None:
        """Undo faults of a run that ended during them. Repeatable. Raises LabFailure for faults
        that could not be undone, or that the guard had to undo."""
        if self._closed:
            return
        self._closed = True
        try:
            problems = [why for step, undo in self._undo_steps() if (why := run_step(step, undo))]
        finally:
            self.state.close()
        if problems:
            self.guard.leave()
            raise LabFailure(f"not as it was before the run: {'; '.join(problems)}")
        self.guard.close()
        if self.guard.has_healed():
            raise LabFailure(
                "a fault was held too long: the guard had healed everything meanwhile (guard.log)"
            )

    def _undo_steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """The steps of undoing, one by one."""
        if self._in_use:
            yield "links", partial(self.links.heal, self.links.links())
        for node in self.commands.paused_by_us():
            yield node, partial(self.commands.resume, node)
        for node in self.commands.ended_by_us():
            yield node, partial(self._controls.start, node)

    def _nodes_with_copies(self, kind: str) -> list[str]:
        return [name for name, node in self._file.nodes.items() if name[0] == kind and node.copy]

    def _copy(self, node: str) -> None:
        folder = self._node_dir(node)
        shutil.rmtree(folder / "data", ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.commands.run(node, "copy", into=str(folder))
        if not (folder / "data").is_dir():
            raise LabFailure(f"the command copy of {node} left nothing in {folder / 'data'}")

    def _logs(self) -> None:
        logs = self.run_dir / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        for node, node_file in self._file.nodes.items():
            if node_file.log:
                (logs / f"{node}.log").write_text(self.commands.run(node, "log"))

    def _node_dir(self, node: str) -> Path:
        return self.run_dir / "nodes" / node


def _open_state(file: ExternalFile) -> ClusterState:
    """ZooKeeper's state, or without ZooKeeper the state in the brokers' responses."""
    if file.zookeeper:
        return ZooKeeperState(file.zookeeper)
    brokers = {name: node.direct for name, node in file.nodes.items() if name[0] == "b"}
    return AnsweredState(brokers or {address: address for address in file.bootstrap})


def run_step(step: str, act: Callable[[], object]) -> str:
    """The error of the act; empty without one."""
    try:
        act()
    except (LabFailure, NotHealthy) as failure:
        return f"{step}: {failure}"
    return ""


def _number(node: str) -> int:
    return int(node.lstrip("bzkq"))


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
