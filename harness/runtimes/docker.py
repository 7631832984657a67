"""Nodes in containers: each node shares a pod with its Toxiproxy (see `containers/pods.py`)."""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import psutil
import requests
from docker.models.containers import Container
from docker.types import Mount

from urteil.chaos.controls import ContainerControls, DiskControls
from urteil.chaos.observations import LabFailure, Limits, NodeState, NodeStatus
from urteil.chaos.packet_controls import PacketControls
from urteil.chaos.parallel import run_on_all
from urteil.chaos.topology import USUAL, Layout
from urteil.harness.clients.processes import ClientPlace
from urteil.harness.reaper import LABEL, start_reaper, sweep_containers
from urteil.harness.runtimes.container_disks import REQUIREMENT, ContainerDisks
from urteil.harness.runtimes.containers.engine import connect
from urteil.harness.runtimes.containers.images import ensure_images
from urteil.harness.runtimes.containers.pods import AT_ONCE, Pods
from urteil.harness.runtimes.disks import path_in_home
from urteil.harness.runtimes.false_clocks import FalseClocks
from urteil.harness.runtimes.folder_archives import extract, pack_folder
from urteil.harness.runtimes.runtime import NodeSpec, Programs

HOME = "/urteil"
USER_ID = 1000
END_DEADLINE_S = 10
PERIOD_US = 100_000
ENGINE_FAILURES = (docker.errors.DockerException, requests.RequestException)
STATES = {"running": NodeState.RUNNING, "paused": NodeState.PAUSED}


class ImagePrograms:
    """The programs inside the images of `compose/`."""

    def python(self) -> str:
        return "python"

    def java(self) -> str:
        return "java"

    def toxiproxy(self) -> str:
        return "/toxiproxy"

    def zookeeper_classpath(self) -> str:
        return "/opt/zookeeper/lib/*"

    def kafka_classpath(self, version: str) -> str:
        return "/opt/kafka/libs/*"

    def zookeeper_classes(self) -> list[str]:
        return []

    def kafka_classes(self, version: str) -> list[str]:
        return []


@dataclass(slots=True)
class _Node:
    container: Container
    cwd: Path
    image: str
    starts: int = 1
    earlier_output: bytes = b""
    ended_by_us: bool = False


class DockerRuntime:
    """Nodes are containers. Implements `Runtime`.

    A node's files go into its container by archive and come back by archive with `close`, so that
    the engine may be on another machine. Everything ends with `close`, or by the reaper when this
    process dies. Raises MissingDependency without an engine or an image.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        images: Sequence[str],
        zookeepers: int,
        controllers: int = 0,
        later: Sequence[str] = (),
        layout: Layout = USUAL,
    ) -> None:
        self._run_dir = run_dir
        self._engine = connect()
        with _lab_failures("images"):
            names = [*dict.fromkeys([*images, *later]), "zookeeper", "toxiproxy"]
            self._built = ensure_images(self._engine, names)
        token = start_reaper()
        sweep_containers(self._engine.url)
        self._labels = {LABEL: token}
        self._nodes: dict[str, _Node] = {}
        self._lock = threading.RLock()
        self.programs: Programs = ImagePrograms()
        self.containers: ContainerControls | None = self
        self.packets: PacketControls | None = None
        self.clients_elsewhere: ClientPlace | None = None
        self.false_clocks: FalseClocks | None = None
        began = time.monotonic()
        with _lab_failures("the engine"):
            self._memory = int(self._engine.client.info()["MemTotal"])
        with _lab_failures("pods"):
            self._pods = Pods(
                self._engine,
                self._built["zookeeper"],
                token,
                brokers=len(images),
                zookeepers=zookeepers,
                controllers=controllers,
                layout=layout,
            )
        self.plan = self._pods.plan
        self._images = dict(zip(self.plan.brokers, images, strict=True))
        self._images |= dict.fromkeys(self.plan.controllers, images[0])
        self.opening_s = time.monotonic() - began

    def home(self, directory: Path) -> Path:
        return Path(HOME)

    def readable_folder(self, node: str, folder: Path) -> Path:
        volume = self.volume(node)
        if volume is None:
            raise LabFailure(f"files of {node} can be read while it runs {REQUIREMENT}")
        return path_in_home(volume, node, folder)

    def disks(self, log_dirs: Callable[[str], Sequence[Path]]) -> DiskControls | None:
        return ContainerDisks(log_dirs, self)

    def volume(self, node: str) -> Path | None:
        """A broker's home as a folder of this machine, whether it runs or not. None without
        permission to enter it, or with a remote engine: its name is random, so it exists nowhere
        else."""
        state = self._node_state(node)
        with _lab_failures(node):
            state.container.reload()
        places = {
            mount["Destination"]: mount["Source"] for mount in state.container.attrs["Mounts"]
        }
        return Path(places[HOME]) if os.access(places[HOME], os.R_OK | os.W_OK | os.X_OK) else None

    @contextlib.contextmanager
    def unpack_home(self, node: str) -> Iterator[Path]:
        """The home of a stopped node as a folder. Changed files are written back at the end."""
        state = self._node_state(node)
        with tempfile.TemporaryDirectory(dir=self._run_dir) as place, _lab_failures(node):
            _unpack(state.container, Path(place))
            yield Path(place)
            state.container.put_archive("/", _pack_folder(Path(place), is_complete=True))

    def start(self, node: str, spec: NodeSpec) -> NodeStatus:
        """Start a node. The first start creates its container; later ones start it again with its
        data.

        Another image needs another container, with the same data.
        """
        with self._lock, _lab_failures(node):
            state = self._nodes.get(node)
            image = spec.image or self._image(node)
            if state is None:
                container = self._create(node, image, spec)
                state = self._nodes[node] = _Node(container, spec.cwd, image)
                container.put_archive("/", _pack_folder(spec.cwd, is_complete=True))
            else:
                if self.is_alive(node):
                    raise LabFailure(f"{node} runs already")
                if image != state.image:
                    self._replace(node, state, image, spec)
                state.container.put_archive("/", _pack_folder(spec.cwd, is_complete=False))
                state.starts += 1
            state.ended_by_us = False
            state.container.start()
            return self.status(node)

    def status(self, node: str) -> NodeStatus:
        known_node = self._nodes.get(node)
        if known_node is None:
            return NodeStatus(node=node, state=NodeState.DEAD, pid=None)
        with _lab_failures(node):
            known_node.container.reload()
        container_state = known_node.container.attrs["State"]
        state = STATES.get(container_state["Status"], NodeState.DEAD)
        return NodeStatus(
            node=node,
            state=state,
            pid=container_state["Pid"] or None,
            exit_code=_exit_code(container_state["ExitCode"]) if state is NodeState.DEAD else None,
            starts=known_node.starts,
        )

    def is_alive(self, node: str) -> bool:
        return self.status(node).state is not NodeState.DEAD

    def kill(self, node: str) -> NodeStatus:
        """Kill a node. A paused node dies without running for a moment."""
        return self._end(node, lambda container: container.kill())

    def stop(self, node: str, *, deadline_s: float) -> NodeStatus:
        if self.status(node).state is NodeState.PAUSED:
            self.resume(node)
        return self._end(node, lambda container: container.stop(timeout=round(deadline_s)))

    def pause(self, node: str) -> NodeStatus:
        """Freeze the container's control group, which stops all its processes."""
        with _lab_failures(node):
            self._node_state(node).container.pause()
        return self.status(node)

    def resume(self, node: str) -> NodeStatus:
        with _lab_failures(node):
            self._node_state(node).container.unpause()
        return self.status(node)

    def unplug(self, node: str) -> None:
        with _lab_failures(node):
            self._pods.unplug(node)

    def plug(self, node: str) -> None:
        with _lab_failures(node):
            self._pods.plug(node)

    def limits(self, node: str) -> Limits:
        state = self._node_state(node)
        with _lab_failures(node):
            state.container.reload()
            host_config = state.container.attrs["HostConfig"]
            stats = state.container.stats(stream=False, one_shot=True)
        allowed = stats["memory_stats"].get("limit", 0)
        counted = stats["cpu_stats"].get("throttling_data", {})
        quota = host_config["CpuQuota"]
        return Limits(
            node=node,
            cpus=quota / PERIOD_US if quota > 0 else None,
            memory_mb=allowed >> 20 if 0 < allowed < self._memory else None,
            throttled=counted.get("throttled_periods", 0),
            periods=counted.get("periods", 0),
        )

    def limit(self, node: str, *, cpus: float | None, memory_mb: int | None) -> Limits:
        settings: dict[str, int] = {}
        if cpus is not None:
            settings |= {"cpu_period": PERIOD_US, "cpu_quota": round(cpus * PERIOD_US)}
        if memory_mb is not None:
            settings |= {"mem_limit": memory_mb << 20, "memswap_limit": -1}
        return self._update(node, settings)

    def unlimit(self, node: str) -> Limits:
        all_of_it = {"mem_limit": self._memory, "memswap_limit": -1}
        return self._update(node, {"cpu_period": PERIOD_US, "cpu_quota": -1, **all_of_it})

    def _update(self, node: str, settings: dict[str, int]) -> Limits:
        with _lab_failures(node):
            self._node_state(node).container.update(**settings)
        return self.limits(node)

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        if self.is_alive(node):
            self._node_state(node).ended_by_us = allowed

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        return self.limit(node, cpus=cpus, memory_mb=None)

    def restore_cpu(self, node: str) -> Limits:
        return self._update(node, {"cpu_period": PERIOD_US, "cpu_quota": -1})

    def cpu_throttling(self, node: str) -> Limits:
        return self.limits(node)

    def local_pid(self, node: str) -> int:
        """The process id that the engine reports. It is on this machine if the command line is the
        same."""
        state = self._node_state(node)
        with _lab_failures(node):
            state.container.reload()
        argv = [state.container.attrs["Path"], *state.container.attrs["Args"]]
        pid = int(state.container.attrs["State"]["Pid"])
        if not pid:
            raise LabFailure(f"{node} does not run")
        try:
            command = psutil.Process(pid).cmdline()
        except psutil.Error:
            command = []
        if command[1:] != argv[1:] or not command:
            raise LabFailure(f"{node} is not a process of this machine: its engine is elsewhere")
        return pid

    def unexpected_ends(self) -> Sequence[NodeStatus]:
        """Raises LabFailure when a container or a pod was removed from outside."""
        with self._lock:
            nodes = {container.container.id: node for node, container in self._nodes.items()}
            pods = {self._pods.pod(node).id: f"the pod of {node}" for node in self.plan.nodes}
            with _lab_failures("the engine"):
                states = {container["Id"]: container["State"] for container in self._list()}
            for identity, name in {**nodes, **pods}.items():
                if identity not in states:
                    raise LabFailure(f"the container of {name} was removed in the middle of a run")
            for identity, name in pods.items():
                if states[identity] != "running":
                    raise LabFailure(
                        f"{name} is {states[identity]}: the lab did not end its container"
                    )
            ended = [
                node for container_id, node in nodes.items() if states[container_id] not in STATES
            ]
            return [self.status(node) for node in ended if not self._nodes[node].ended_by_us]

    def log(self, node: str) -> str:
        state = self._nodes.get(node)
        if state is None:
            return ""
        with _lab_failures(node):
            return _read_output(state).decode(errors="replace")

    def close(self) -> None:
        """Kill running nodes, copy files and logs back, remove containers and networks.
        Repeatable."""
        with self._lock:
            nodes = list(self._nodes.items())
            self._nodes.clear()
            failures: list[str] = []
            run_on_all(lambda entry: self._retrieve(*entry, failures), nodes, at_once=AT_ONCE)
            with contextlib.suppress(*ENGINE_FAILURES):  # the reaper tries again
                self._pods.close()
            self._engine.client.close()
        if failures:
            raise LabFailure(f"evidence of {', '.join(sorted(failures))}")

    def _retrieve(self, node: str, state: _Node, failures: list[str]) -> None:
        """End one node finally, and copy its files and its log into the run's folder. Incomplete
        data is removed: it would be judged."""
        try:
            with contextlib.suppress(docker.errors.APIError):
                state.container.kill()
            self._copy_evidence(node, state)
        except (*ENGINE_FAILURES, OSError, tarfile.TarError) as error:
            shutil.rmtree(state.cwd / "data", ignore_errors=True)
            failures.append(f"{node} did not come back: {error}")
        with contextlib.suppress(*ENGINE_FAILURES):  # the reaper tries again
            state.container.remove(force=True, v=True)
        for volume in state.container.attrs[
            "Mounts"
        ]:  # of a container that was removed from outside
            with contextlib.suppress(*ENGINE_FAILURES):
                self._engine.client.api.remove_volume(volume["Name"])

    def _copy_evidence(self, node: str, state: _Node) -> None:
        logs = self._run_dir / "logs"
        logs.mkdir(exist_ok=True)
        (logs / f"{node}.log").write_bytes(_read_output(state))
        if not node.startswith("toxiproxy"):
            _unpack(state.container, state.cwd)

    def _image(self, node: str) -> str:
        """A node's first image."""
        if node.startswith("toxiproxy-"):
            return "toxiproxy"
        return "zookeeper" if node.startswith("zk") else self._images[node]

    def _replace(self, node: str, state: _Node, image: str, spec: NodeSpec) -> None:
        """Create another container on the same volume. The log of the earlier one is kept."""
        before = state.container
        state.earlier_output = _read_output(state)
        home = next(
            mount["Name"] for mount in before.attrs["Mounts"] if mount["Destination"] == HOME
        )
        state.container = self._create(node, image, spec, home=home)
        state.image = image
        before.remove()

    def _create(
        self, node: str, image: str, spec: NodeSpec, *, home: str | None = None
    ) -> Container:
        """Create a container on the volume `home`, or on a new one."""
        beside = node.removeprefix("toxiproxy-")
        return self._engine.client.containers.create(
            self._built[image],
            entrypoint=list(spec.argv[:1]),
            command=list(spec.argv[1:]),
            environment=dict(spec.env),
            network_mode=f"container:{self._pods.pod(beside).id}",
            working_dir=HOME,
            labels={**self._labels, "org.urteil.node": node},
            healthcheck={"test": ["NONE"]},
            mounts=[Mount(HOME, home, labels=self._labels)] if node in self._images else [],
        )

    def _end(self, node: str, how: Any) -> NodeStatus:
        node_state = self._node_state(node)
        with _lab_failures(node):
            now = self.status(node)
            if now.state is NodeState.DEAD:
                return now
            node_state.ended_by_us = True
            try:
                how(node_state.container)
                node_state.container.wait(timeout=END_DEADLINE_S)
            except docker.errors.APIError:
                if self.is_alive(node):  # otherwise it has just ended by itself
                    raise
        return self.status(node)

    def _list(self) -> list[dict[str, Any]]:
        label = "=".join(next(iter(self._labels.items())))
        containers: list[dict[str, Any]] = self._engine.client.api.containers(
            all=True, filters={"label": label}
        )
        return containers

    def _node_state(self, node: str) -> _Node:
        state = self._nodes.get(node)
        if state is None:
            raise LabFailure(f"{node} was never started")
        return state


def _read_output(state: _Node) -> bytes:
    """A node's output, including that of its earlier containers."""
    return state.earlier_output + bytes(state.container.logs())


def _exit_code(code: int) -> int:
    """The exit code in the form of subprocess: the negative signal that ended the process."""
    return 128 - code if code > 128 else code


def _pack_folder(folder: Path, *, is_complete: bool) -> bytes:
    """An archive of a node's folder as HOME, for the image's user."""

    def set_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = USER_ID
        entry.uname = entry.gname = ""
        return entry

    return pack_folder(folder, HOME, set_owner, is_complete=is_complete)


def _unpack(container: Container, folder: Path) -> None:
    """Copy the current files of HOME into `folder`."""
    chunks, _ = container.get_archive(HOME)
    with tempfile.TemporaryFile(dir=folder) as file:
        for chunk in chunks:
            file.write(chunk)
        file.seek(0)
        extract(file, folder)


@contextlib.contextmanager
def _lab_failures(subject: str) -> Iterator[None]:
    """Raise the engine's failures as LabFailure."""
    try:
        yield
    except docker.errors.NotFound as error:
        raise LabFailure(f"{subject}: its container was removed: {error.explanation}") from error
    except docker.errors.DockerException as error:
        raise LabFailure(f"{subject}: the Docker engine failed: {error}") from error
    except requests.RequestException as error:
        raise LabFailure(f"{subject}: the Docker engine does not answer: {error}") from error
