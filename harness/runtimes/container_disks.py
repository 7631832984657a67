"""Disks of brokers in containers. The home of a broker is a volume.

If the engine runs on this machine and the lab is root, the volume is a folder of this machine.
Otherwise the engine packs and unpacks the home of a stopped broker as an archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from urteil.chaos.observations import LabFailure, NodeState, NodeStatus
from urteil.harness.runtimes.disks import ProcessDisks, path_in_home

REQUIREMENT = "only where the engine is this machine's own and the lab is root"


class ContainerHomes(Protocol):
    """The runtime's access to the homes of its containers."""

    def status(self, node: str) -> NodeStatus: ...

    def local_pid(self, node: str) -> int: ...

    def home(self, directory: Path) -> Path: ...

    def volume(self, node: str) -> Path | None:
        """A broker's home as a folder of this machine; None if the lab cannot reach it."""
        ...

    def unpack_home(self, node: str) -> AbstractContextManager[Path]:
        """The home of a stopped node as a folder, which is written back at the end."""
        ...


class ContainerDisks(ProcessDisks):
    """The disks of brokers in containers. With a remote engine, only files of a stopped broker can
    be changed, and none can be removed."""

    def __init__(self, log_dirs: Callable[[str], Sequence[Path]], runtime: ContainerHomes) -> None:
        super().__init__(log_dirs, runtime.local_pid)
        self._runtime = runtime

    def broker_log_dirs(self, node: str) -> Sequence[Path]:
        return self._log_dirs_below(self._runtime.home(Path()), node)

    @contextmanager
    def open_log_directories(self, node: str) -> Iterator[Sequence[Path]]:
        volume = self._runtime.volume(node)
        if volume is not None:
            yield self._log_dirs_below(volume, node)
            return
        if self._runtime.status(node).state is not NodeState.DEAD:
            raise LabFailure(f"files of {node} can be reached while it runs {REQUIREMENT}")
        with self._runtime.unpack_home(node) as home:
            folders = self._log_dirs_below(home, node)
            before = _names(folders)
            yield folders
            if before - _names(folders):
                raise LabFailure(f"files of {node} can be taken away {REQUIREMENT}")

    def _log_dirs_below(self, home: Path, node: str) -> list[Path]:
        return [path_in_home(home, node, log_dir) for log_dir in self._log_dirs(node)]


def _names(folders: Sequence[Path]) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*")}
