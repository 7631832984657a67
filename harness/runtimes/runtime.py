"""What a cluster must know of the place where its nodes run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from urteil.chaos.controls import ContainerControls, DiskControls
from urteil.chaos.observations import Limits, NodeStatus
from urteil.chaos.topology import Plan


class Programs(Protocol):
    """Where a node finds what it is started with, as the node sees it."""

    def python(self) -> str: ...

    def java(self) -> str: ...

    def toxiproxy(self) -> str: ...

    def zookeeper_classpath(self) -> str: ...

    def kafka_classpath(self, version: str) -> str: ...

    def zookeeper_classes(self) -> list[str]:
        """Further options with which its JVM starts sooner."""
        ...

    def kafka_classes(self, version: str) -> list[str]: ...


class Nodes(Protocol):
    """Kills, pauses and watches nodes by name; safe to use from any thread.

    LabFailure where the lab itself fails.
    """

    @property
    def containers(self) -> ContainerControls | None:
        """What can be done to containers; None where nodes are none."""
        ...

    def disks(self, log_dirs: Callable[[str], Sequence[Path]]) -> DiskControls | None:
        """The disks behind the log directories of brokers, which lie there in the run's folder;
        None where nobody reaches them."""
        ...

    def status(self, node: str) -> NodeStatus:
        """A node that was never started is dead without a pid."""
        ...

    def alive(self, node: str) -> bool: ...

    def kill(self, node: str) -> NodeStatus:
        """SIGKILL; returns when the process is gone."""
        ...

    def stop(self, node: str, *, deadline_s: float) -> NodeStatus:
        """SIGTERM, wait, and SIGKILL after the deadline. A paused node goes on first."""
        ...

    def pause(self, node: str) -> NodeStatus:
        """Stop every thread of the node; returns when they are stopped."""
        ...

    def resume(self, node: str) -> NodeStatus: ...

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        """As `chaos.controls.Controls.allow_exit`."""
        ...

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        """As `chaos.controls.Controls`; so are the next two."""
        ...

    def restore_cpu(self, node: str) -> Limits: ...

    def cpu_throttling(self, node: str) -> Limits: ...

    def local_pid(self, node: str) -> int:
        """The node's process as this machine knows it; LabFailure when it does not."""
        ...

    def unexpected_ends(self) -> Sequence[NodeStatus]:
        """Nodes that ended although nobody here ended them."""
        ...


class Runtime(Nodes, Protocol):
    """Starts them too. `plan` says under which addresses."""

    @property
    def plan(self) -> Plan: ...

    @property
    def programs(self) -> Programs: ...

    @property
    def opening_s(self) -> float:
        """Seconds that addresses and links took to be there, installs left out."""
        ...

    def home(self, directory: Path) -> Path:
        """The folder `directory` of the run as a node started in it sees it."""
        ...

    def start(
        self,
        node: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path,
        image: str | None = None,
    ) -> NodeStatus:
        """Start a node that does not run, in the folder `cwd` of the run, with its files. Where
        nodes are made of images it is one of `image` from now on, with the data that it had."""
        ...

    def log(self, node: str) -> str:
        """What the node has printed, over its restarts."""
        ...

    def close(self) -> None:
        """End whatever still runs; files and logs of all nodes are in the run's folder then."""
        ...
