"""The interface to the place where a cluster's nodes run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from urteil.chaos.controls import ContainerControls, DiskControls
from urteil.chaos.observations import Limits, NodeStatus
from urteil.chaos.packet_controls import PacketControls
from urteil.chaos.topology import Plan
from urteil.harness.runtimes.false_clocks import FalseClocks

if TYPE_CHECKING:  # the agents of hosts start sooner without it
    from urteil.harness.clients.processes import ClientPlace


class Programs(Protocol):
    """The programs and files of nodes, by the paths in a node."""

    def python(self) -> str: ...

    def java(self) -> str: ...

    def toxiproxy(self) -> str: ...

    def zookeeper_classpath(self) -> str: ...

    def kafka_classpath(self, version: str) -> str: ...

    def zookeeper_classes(self) -> list[str]:
        """Further JVM options for a faster start."""
        ...

    def kafka_classes(self, version: str) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """The command of a node: a command line in the folder `cwd` of the run, with `env` in addition
    to the runtime's environment. With images, it runs from `image`; None is the node's first
    one."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None


class Nodes(Protocol):
    """Kills, pauses and watches nodes by name. Safe to use from any thread.

    Raises LabFailure when the lab itself fails.
    """

    @property
    def containers(self) -> ContainerControls | None:
        """The controls of containers; None if nodes are not containers."""
        ...

    @property
    def packets(self) -> PacketControls | None:
        """The packets between the nodes' hosts; None if nodes are not on hosts."""
        ...

    def disks(self, log_dirs: Callable[[str], Sequence[Path]]) -> DiskControls | None:
        """The disks of the brokers' log directories in the run's folder; None if the lab cannot
        reach them."""
        ...

    def status(self, node: str) -> NodeStatus:
        """A node that was never started is dead without a pid."""
        ...

    def is_alive(self, node: str) -> bool: ...

    def kill(self, node: str) -> NodeStatus:
        """SIGKILL; returns when the process is gone."""
        ...

    def stop(self, node: str, *, deadline_s: float) -> NodeStatus:
        """SIGTERM, wait, and SIGKILL after the deadline. A paused node is resumed first."""
        ...

    def pause(self, node: str) -> NodeStatus:
        """Stop every thread of the node; returns when they are stopped."""
        ...

    def resume(self, node: str) -> NodeStatus: ...

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        """As `chaos.controls.Controls.allow_exit`."""
        ...

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        """As `chaos.controls.Controls`, and so are the next two."""
        ...

    def restore_cpu(self, node: str) -> Limits: ...

    def cpu_throttling(self, node: str) -> Limits: ...

    def local_pid(self, node: str) -> int:
        """The node's process id on this machine. Raises LabFailure if there is none."""
        ...

    def unexpected_ends(self) -> Sequence[NodeStatus]:
        """Nodes that ended without a request of the lab."""
        ...


class Runtime(Nodes, Protocol):
    """The interface of a runtime, which starts nodes, too. `plan` has their addresses."""

    @property
    def plan(self) -> Plan: ...

    @property
    def clients_elsewhere(self) -> ClientPlace | None:
        """Other machines for the lab's clients. None: they run on this one."""
        ...

    @property
    def false_clocks(self) -> FalseClocks | None:
        """Wall clocks that the lab can set; None if nodes cannot have them."""
        ...

    @property
    def programs(self) -> Programs: ...

    @property
    def opening_s(self) -> float:
        """Seconds to set up addresses and links, without installations."""
        ...

    def home(self, directory: Path) -> Path:
        """The path of the folder `directory` of the run in a node that is started there."""
        ...

    def readable_folder(self, node: str, folder: Path) -> Path:
        """The folder in which the lab reads `folder` of the run while the node uses it. LabFailure
        if it cannot."""
        ...

    def start(self, node: str, spec: NodeSpec) -> NodeStatus:
        """Start a stopped node with its files. It keeps its data, even with another image."""
        ...

    def log(self, node: str) -> str:
        """The node's output, over its restarts."""
        ...

    def close(self) -> None:
        """End every running node. Then files and logs of all nodes are in the run's folder."""
        ...
