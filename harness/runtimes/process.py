"""Nodes as processes of this machine, each in a process group of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from urteil.chaos.controls import ContainerControls, DiskControls
from urteil.chaos.loopback import Claim, LoopbackPlan
from urteil.chaos.packet_controls import PacketControls
from urteil.chaos.topology import USUAL, Layout
from urteil.harness.clients.processes import ClientPlace
from urteil.harness.dependencies.faketime import faketime_library
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.kafka import kafka_classes, kafka_classpath
from urteil.harness.dependencies.toxiproxy import toxiproxy_binary
from urteil.harness.dependencies.zookeeper import zookeeper_classes, zookeeper_classpath
from urteil.harness.reaper import start_reaper
from urteil.harness.runtimes.disks import ProcessDisks, can_mount
from urteil.harness.runtimes.false_clocks import FalseClocks, replace_file
from urteil.harness.runtimes.node_processes import NodeProcesses
from urteil.harness.runtimes.runtime import Programs

OWN_MOUNTS = ("unshare", "--mount", "--")
"""Starts the program in a mount namespace of its own, which ends with it. Faults change it."""


class MachinePrograms:
    """The programs of this machine. Missing ones are installed; MissingDependency if that fails."""

    def python(self) -> str:
        return sys.executable

    def java(self) -> str:
        return java()

    def toxiproxy(self) -> str:
        return str(toxiproxy_binary())

    def zookeeper_classpath(self) -> str:
        return zookeeper_classpath()

    def kafka_classpath(self, version: str) -> str:
        return kafka_classpath(version)

    def zookeeper_classes(self) -> list[str]:
        return zookeeper_classes()

    def kafka_classes(self, version: str) -> list[str]:
        return kafka_classes(version)


class ProcessRuntime(NodeProcesses):
    """Nodes are processes on loopback. Implements `Runtime`.

    Output goes to `logs/<node>.log` of the run, appended over restarts. Everything ends with
    `close`, or by the reaper when this process dies.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        brokers: int,
        zookeepers: int,
        controllers: int = 0,
        layout: Layout = USUAL,
    ) -> None:
        super().__init__(run_dir / "logs", start_reaper())
        self._claim = Claim()
        self.plan = LoopbackPlan(
            self._claim.octet,
            self._claim.ports,
            brokers=brokers,
            zookeepers=zookeepers,
            controllers=controllers,
            layout=layout,
        )
        self.programs: Programs = MachinePrograms()
        self.opening_s = 0.0
        self.containers: ContainerControls | None = None
        self.packets: PacketControls | None = None
        self.clients_elsewhere: ClientPlace | None = None
        self.false_clocks: FalseClocks | None = FalseClocks(
            library=lambda: str(faketime_library()),
            packages=tuple(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))),
            replace=lambda node, name, text: replace_file(run_dir / "nodes" / node / name, text),
        )

    def home(self, directory: Path) -> Path:
        return directory

    def readable_folder(self, node: str, folder: Path) -> Path:
        return folder

    def disks(self, log_dirs: Callable[[str], Sequence[Path]]) -> DiskControls | None:
        return ProcessDisks(log_dirs, self.local_pid)

    def _prefix(self, node: str) -> Sequence[str]:
        return OWN_MOUNTS if node in self.plan.brokers and can_mount() else ()

    def close(self) -> None:
        """SIGKILL every running node. Repeatable."""
        self._claim.close()
        super().close()
