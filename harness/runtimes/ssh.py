"""Nodes on machines that are reached by ssh, each with its Toxiproxy beside it.

An agent on each host runs its nodes (`hosts/agent.py`). Their files go there with each start and
come back with `close`. The clients run beside the lab, and so does their Toxiproxy, unless hosts
for clients are named.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import shutil
import socket
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from urteil.chaos.controls import ContainerControls, DiskControls
from urteil.chaos.loopback import CLAIM_INDEX, CLAIM_PORT
from urteil.chaos.observations import CLIENT, LabFailure, Limits, NodeState, NodeStatus
from urteil.chaos.packet_controls import PacketControls
from urteil.chaos.parallel import run_on_all
from urteil.harness import host_clocks
from urteil.harness.clients.processes import ClientPlace
from urteil.harness.dependencies.faketime import faketime_library
from urteil.harness.runtimes.disks import path_in_home
from urteil.harness.runtimes.false_clocks import FalseClocks
from urteil.harness.runtimes.folder_archives import pack_folder
from urteil.harness.runtimes.hosts.connection import CALL_S, HostConnection
from urteil.harness.runtimes.hosts.followed_folders import FollowedFolder
from urteil.harness.runtimes.hosts.host_clock import FIRST_EXCHANGES, HostClock, measure
from urteil.harness.runtimes.hosts.host_facts import HostFacts, find_facts, require_usable
from urteil.harness.runtimes.hosts.host_files import HostDisks, fetch_folder, replace_folder
from urteil.harness.runtimes.hosts.host_packets import HostPackets
from urteil.harness.runtimes.hosts.host_programs import HostPrograms
from urteil.harness.runtimes.hosts.hosts_plan import BLOCKS, Block, HostsPlan, Place
from urteil.harness.runtimes.hosts.inventory import (
    BROKER,
    CONTROLLER,
    ZOOKEEPER,
    Host,
    Role,
    find_hosts,
    load_hosts,
    place_nodes,
)
from urteil.harness.runtimes.hosts.journal_times import JournalTimes
from urteil.harness.runtimes.hosts.parts import (
    PARTS,
    Part,
    clients_part,
    faketime_part,
    java_part,
    lab_part,
    packages_part,
    toxiproxy_part,
)
from urteil.harness.runtimes.hosts.remote_clients import PREFIX as CLIENTS
from urteil.harness.runtimes.hosts.remote_clients import ClientHost, RemoteClients
from urteil.harness.runtimes.process import MachinePrograms, ProcessRuntime
from urteil.harness.runtimes.runtime import NodeSpec, Programs

OUTPUT_S = 1.0
CLIENT_OUTPUT_S = 0.25
"""For a host with clients: the lab follows their journals."""
CLOCK_S = 5.0
BESIDE = "toxiproxy-"
CLIENTS_TOXIPROXY, FORWARDS = f"{BESIDE}{CLIENT}", f"{BESIDE}forwards"


@dataclass(slots=True)
class _Machine:
    """A host with a running agent. `offsets` is the number of fetched bytes of each node's
    output."""

    connection: HostConnection
    facts: HostFacts
    run_folder: str
    clock: HostClock = field(default_factory=HostClock)
    offsets: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, operation: str, *arguments: Any, **deadline: float) -> Any:
        return self.connection.call(operation, *arguments, **deadline)


class SshRuntime:
    """Nodes are processes of several hosts. Implements `Runtime`.

    Raises ValueError for a bad inventory, and LabFailure for a host that cannot be used.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        inventory: Path,
        brokers: int,
        zookeepers: int,
        controllers: int = 0,
        client_hosts: Sequence[str] = (),
    ) -> None:
        hosts = load_hosts(inventory)
        self._client_hosts = find_hosts(hosts, client_hosts)
        self._run_dir = run_dir
        self._beside_lab = ProcessRuntime(
            run_dir, brokers=brokers, zookeepers=zookeepers, controllers=controllers
        )
        nodes = self._beside_lab.plan
        roles: dict[str, Role] = dict.fromkeys(nodes.brokers, BROKER)
        roles |= dict.fromkeys(nodes.zookeepers, ZOOKEEPER)
        roles |= dict.fromkeys(nodes.controllers, CONTROLLER)
        self._placed = place_nodes(hosts, roles)
        if self._client_hosts:
            self._placed[CLIENT] = self._client_hosts[0]
        self.containers: ContainerControls | None = None
        self._folders: dict[str, Path] = {}
        self._followed: dict[Path, FollowedFolder] = {}
        self._sent: set[str] = set()
        self._machines: dict[str, _Machine] = {}
        self._connections: list[HostConnection] = []
        self._closing = threading.Event()
        self._lock = threading.RLock()
        self._claimed_here: socket.socket | None = None
        self._remote_clients: RemoteClients | None = None
        try:
            for part in (lab_part, packages_part):
                part()  # here once: the thread of each host would make it
            chosen = [*self._placed.values(), *self._client_hosts]
            used = list({host.name: host for host in chosen}.values())
            opened = run_on_all(self._open, used)
            require_usable([machine.facts for machine in opened])
            run_on_all(self._send_programs, opened)  # an agent would miss the lab meanwhile
            run_on_all(self._start_agent, opened)
            began = time.monotonic()
            self.plan = self._claim()
            self.opening_s = time.monotonic() - began
        except BaseException:
            self.close()
            raise
        self.programs: Programs = HostPrograms(self._send)
        self.packets: PacketControls | None = HostPackets(
            self.plan, lambda node, *call: self._machine(node).call(*call), self._require_filter
        )
        if self._client_hosts:
            places = [self._client_host(self._machines[host.name]) for host in self._client_hosts]
            self._remote_clients = RemoteClients(places, run_dir)
        self.clients_elsewhere: ClientPlace | None = self._remote_clients
        self.false_clocks: FalseClocks | None = FalseClocks(
            library=self._faketime,
            packages=tuple(f"{PARTS}/{part.name}" for part in (lab_part(), packages_part())),
            replace=lambda node, *file: self._machine(node).call("replace_file", node, *file),
        )
        for machine in self._machines.values():
            threading.Thread(target=self._stream, args=(machine,), daemon=True).start()

    def _open(self, host: Host) -> _Machine:
        connection = HostConnection(host)
        self._connections.append(connection)
        connection.open()
        self._machines[host.name] = _Machine(connection, find_facts(connection), "")
        return self._machines[host.name]

    def _send_programs(self, machine: _Machine) -> None:
        """Send what every node needs."""
        java = [] if machine.facts.has_java else [java_part()]
        toxiproxy = toxiproxy_part(machine.facts.found.machine)
        clients = [clients_part()] if machine.connection.host in self._client_hosts else []
        parts = [lab_part(), packages_part(), toxiproxy, *java, *clients]
        machine.connection.send_parts(parts, machine.facts.found.parts)

    def _client_host(self, machine: _Machine) -> ClientHost:
        parts = f"{machine.connection.host.folder}/parts"
        packages = (lab_part(), packages_part(), clients_part())
        return ClientHost(
            connection=machine.connection,
            python=self.programs.python(),
            packages=":".join(f"{parts}/{part.name}" for part in packages),
            times=None if machine.facts.shares_clock else JournalTimes(machine.clock),
        )

    def _start_agent(self, machine: _Machine) -> None:
        """Start the agent, and link the run's programs to those of the host."""
        connection, found = machine.connection, machine.facts.found
        connection.start_agent([lab_part(), packages_part()])
        machine.run_folder = machine.call("run_folder")
        for _ in range(FIRST_EXCHANGES):
            self._measure_clock(machine)
        parts = f"{connection.host.folder}/parts"
        toxiproxy = toxiproxy_part(found.machine)
        machine.call("link", "toxiproxy-server", f"{parts}/{toxiproxy.name}/toxiproxy-server")
        sent = f"{parts}/{java_part().name}/bin/java" if not machine.facts.has_java else ""
        machine.call("link", "java", sent or found.java)

    def _send(self, part: Part) -> None:
        with self._lock:
            if part.name not in self._sent:
                run_on_all(
                    lambda machine: machine.connection.send_parts(
                        [part], machine.facts.found.parts
                    ),
                    self._in_use(),
                )
                self._sent.add(part.name)

    def _faketime(self) -> str:
        part = faketime_part()
        self._send(part)
        return f"{PARTS}/{part.name}/{faketime_library().name}"

    def _claim(self) -> HostsPlan:
        """Find a block of ports that is free on all hosts."""
        for block in random.SystemRandom().sample(BLOCKS, len(BLOCKS)):
            if self._claim_here(block) and all(run_on_all(partial(_claim, block), self._in_use())):
                return HostsPlan(block, self._places(), beside_lab=self._beside_lab.plan)
        raise LabFailure("no block of ports is free on all hosts: end other labs there")

    def _claim_here(self, block: Block) -> bool:
        """With hosts for clients, reserve the block's loopback network on this machine as well."""
        if self._claimed_here is not None:
            self._claimed_here.close()
        if not self._client_hosts:
            return True
        self._claimed_here = socket.socket()
        try:
            self._claimed_here.bind((f"127.{block.octet}.0.{CLAIM_INDEX}", CLAIM_PORT))
        except OSError:
            return False
        return True

    def _require_filter(self, node: str) -> None:
        if problem := self._machine(node).facts.packet_filter_problem:
            raise LabFailure(problem)

    def _places(self) -> dict[str, Place]:
        places = {}
        for node, host in self._placed.items():
            machine = self._machines[host.name]
            facts = machine.facts
            places[node] = Place(
                host=host.name,
                address=host.address,
                host_name=facts.found.host_name,
                clock=None if facts.shares_clock else machine.clock,
            )
        return places

    def home(self, directory: Path) -> Path:
        node = directory.name
        if self._runs_beside_lab(node):
            return directory
        return Path(self._machine(node).run_folder) / "nodes" / node

    def readable_folder(self, node: str, folder: Path) -> Path:
        """The folder itself; its content follows that on the node's host until `close`."""
        on_host = path_in_home(Path("nodes") / node, node, folder)
        with self._lock:
            if folder not in self._followed:
                call = self._machine(node).call
                read = partial(call, "changes", str(on_host))
                self._followed[folder] = FollowedFolder(read, folder)
                self._followed[folder].start()
        return folder

    def disks(self, log_dirs: Callable[[str], Sequence[Path]]) -> DiskControls | None:
        return HostDisks(log_dirs, self)

    @contextlib.contextmanager
    def open_home(self, node: str) -> Iterator[Path]:
        """As `HostFolders.open_home`."""
        call = self._machine(node).call
        with tempfile.TemporaryDirectory(dir=self._run_dir) as place:
            fetch_folder(call, node, Path(place))
            yield Path(place)
            replace_folder(call, node, Path(place))

    def start(self, node: str, spec: NodeSpec) -> NodeStatus:
        """Start a node. Its first start sends the files of its folder, a later one those directly
        in it: the node keeps its data."""
        if self._runs_beside_lab(node):
            argv = [MachinePrograms().toxiproxy(), *spec.argv[1:]]
            return self._beside_lab.start(node, replace(spec, argv=argv))
        first = node not in self._folders
        if first and node == CLIENTS_TOXIPROXY:
            self._start_forwards(spec)
        archive = pack_folder(spec.cwd, node, lambda entry: entry, is_complete=first)
        status = self._status(node, "start", list(spec.argv), dict(spec.env), archive)
        with self._lock:
            self._folders[node] = spec.cwd
        return status

    def _start_forwards(self, toxiproxy: NodeSpec) -> None:
        """Start a Toxiproxy that leads to that of the clients, beside the lab and on each further
        host for clients."""
        config = json.dumps([proxy.config() for proxy in self.plan.client_forwards()])
        port = str(self.plan.toxiproxy_listens(CLIENT)[1])
        folder = self._run_dir / "nodes" / FORWARDS
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "proxies.json").write_text(config)
        host, own_port = self._beside_lab.plan.toxiproxy_listens(CLIENT)
        words = ["-host", host, "-port", str(own_port), "-config", str(folder / "proxies.json")]
        argv = [MachinePrograms().toxiproxy(), *words]
        self._beside_lab.start(FORWARDS, replace(toxiproxy, argv=argv, cwd=folder))
        for host_ in self._client_hosts[1:]:
            words = ["-host", host_.address, "-port", port, "-config", "proxies.json"]
            archive = pack_folder(folder, FORWARDS, lambda entry: entry, is_complete=True)
            machine = self._machines[host_.name]
            argv = [self.programs.toxiproxy(), *words]
            machine.call("start", FORWARDS, argv, dict(toxiproxy.env), archive)

    def status(self, node: str) -> NodeStatus:
        if self._runs_beside_lab(node):
            return self._beside_lab.status(node)
        return self._status(node, "status")

    def is_alive(self, node: str) -> bool:
        return self.status(node).state is not NodeState.DEAD

    def kill(self, node: str) -> NodeStatus:
        if self._runs_beside_lab(node):
            return self._beside_lab.kill(node)
        return self._status(node, "kill")

    def stop(self, node: str, *, deadline_s: float) -> NodeStatus:
        return self._status(node, "stop", deadline_s, patience_s=deadline_s)

    def pause(self, node: str) -> NodeStatus:
        return self._status(node, "pause")

    def resume(self, node: str) -> NodeStatus:
        return self._status(node, "resume")

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        self._machine(node).call("allow_exit", node, allowed)

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        return self._limits(node, "throttle_cpu", cpus)

    def restore_cpu(self, node: str) -> Limits:
        return self._limits(node, "restore_cpu")

    def cpu_throttling(self, node: str) -> Limits:
        return self._limits(node, "cpu_throttling")

    def local_pid(self, node: str) -> int:
        raise LabFailure(f"{node} runs on {self._machine(node).connection.host}, not here")

    def unexpected_ends(self) -> Sequence[NodeStatus]:
        ended = [machine.call("unexpected_ends") for machine in self._in_use()]
        remote = [msgspec.convert(status, NodeStatus) for statuses in ended for status in statuses]
        nodes = [status for status in remote if not status.node.startswith(CLIENTS)]
        return [*self._beside_lab.unexpected_ends(), *nodes]

    def log(self, node: str) -> str:
        if not self._runs_beside_lab(node):
            self._fetch_output(self._machine(node))
        return self._beside_lab.log(node)

    def close(self) -> None:
        """Kill running nodes, copy files and logs back, end the agents. Repeatable."""
        self._closing.set()
        with self._lock:
            for followed in self._followed.values():
                followed.close()
            self._followed.clear()
            folders, self._folders = dict(self._folders), {}
            failures: list[str] = []
            run_on_all(lambda machine: self._retrieve(machine, folders, failures), self._in_use())
            failures += self._remote_clients.failures() if self._remote_clients else []
            run_on_all(lambda connection: connection.close(), self._connections)
            self._beside_lab.close()
            self._machines.clear()
            self._connections.clear()
            if self._claimed_here is not None:
                self._claimed_here.close()
        if failures:
            raise LabFailure(f"evidence of {', '.join(sorted(failures))}")

    def _retrieve(
        self, machine: _Machine, folders: Mapping[str, Path], failures: list[str]
    ) -> None:
        """Fetch the files of the nodes of one host. Incomplete data is removed: it would be
        judged."""
        host = machine.connection.host
        for node, folder in folders.items():
            if self._placed[node.removeprefix(BESIDE)] is not host:
                continue
            try:
                machine.call("kill", node)
                if not node.startswith(BESIDE):
                    fetch_folder(machine.call, node, folder)
                self._fetch_output(machine)
            except (LabFailure, OSError, tarfile.TarError, EOFError) as failure:
                shutil.rmtree(folder / "data", ignore_errors=True)
                failures.append(f"{node} did not come back: {failure}")

    def _stream(self, machine: _Machine) -> None:
        """Fetch output during the run, and measure the host's clocks and load. The requests also
        show the agent that the lab lives."""
        has_clients = machine.connection.host in self._client_hosts
        pause_s = CLIENT_OUTPUT_S if has_clients else OUTPUT_S
        for number in itertools.count(1):
            if self._closing.wait(pause_s):
                return
            try:
                if number % round(CLOCK_S / pause_s) == 0:
                    self._measure_clock(machine)
                    self._fetch_loads(machine)
                self._fetch_output(machine)
                if self._remote_clients is not None:
                    self._remote_clients.fetch(machine.connection)
            except LabFailure:
                return  # whoever calls the host next reports it

    def _measure_clock(self, machine: _Machine) -> None:
        host = machine.connection.host.name
        self._write_samples(measure(host, machine.clock, lambda: machine.call("clocks")))

    def _fetch_loads(self, machine: _Machine) -> None:
        """The load of another machine; that of this one is the lab's."""
        rows = machine.call("loads")
        if not machine.facts.shares_clock:
            host, lab_time = machine.connection.host.name, machine.clock.lab_time
            self._write_samples(
                row | {"source": host, "at_ns": lab_time(row["at_ns"])[0]} for row in rows
            )

    def _write_samples(self, rows: Iterable[dict[str, Any]]) -> None:
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        with (self._run_dir / host_clocks.FILE).open("a") as file:
            file.write(text)  # at once: so few bytes of two hosts never mix

    def _fetch_output(self, machine: _Machine) -> None:
        host = machine.connection.host
        with machine.lock:
            for node in list(self._folders):
                if self._placed[node.removeprefix(BESIDE)] is host:
                    machine.offsets.setdefault(node, 0)
            while news := machine.call("output", machine.offsets):
                for node, content in news.items():
                    with (self._run_dir / "logs" / f"{node}.log").open("ab") as log:
                        log.write(content)
                    machine.offsets[node] += len(content)

    def _status(
        self, node: str, operation: str, *arguments: Any, patience_s: float = 0.0
    ) -> NodeStatus:
        deadline_s = CALL_S + patience_s
        value = self._machine(node).call(operation, node, *arguments, deadline_s=deadline_s)
        return msgspec.convert(value, NodeStatus)

    def _limits(self, node: str, operation: str, *arguments: Any) -> Limits:
        return msgspec.convert(self._machine(node).call(operation, node, *arguments), Limits)

    def _machine(self, node: str) -> _Machine:
        return self._machines[self._placed[node.removeprefix(BESIDE)].name]

    def _runs_beside_lab(self, node: str) -> bool:
        return node == CLIENTS_TOXIPROXY and not self._client_hosts

    def _in_use(self) -> list[_Machine]:
        return list(self._machines.values())


def _claim(block: Block, machine: _Machine) -> bool:
    address = machine.connection.host.address
    return bool(machine.call("claim", block.octet, address, block.first_port, block.size))
