"""The disks of brokers in containers, through the engine's archives alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from urteil.chaos.views import LabFailure, NodeState, NodeStatus

PROCESSES_ALONE = "only where brokers are processes of this machine: use --runtime process"


class Archives(Protocol):
    """What the runtime gives: the files of a container, there and back."""

    def status(self, node: str) -> NodeStatus: ...

    def unpacked(self, node: str) -> AbstractContextManager[Path]: ...


class ContainerDisks:
    """Files of a dead broker can be changed; its process's view of them can not."""

    def __init__(self, log_dirs: Callable[[str], Sequence[Path]], runtime: Archives) -> None:
        self._log_dirs = log_dirs
        self._runtime = runtime

    @contextmanager
    def opened(self, node: str) -> Iterator[Sequence[Path]]:
        if self._runtime.status(node).state is not NodeState.DEAD:
            raise LabFailure(f"files of {node} can be changed while it runs {PROCESSES_ALONE}")
        with self._runtime.unpacked(node) as home:
            folders = [home.joinpath(*_below_home(node, one)) for one in self._log_dirs(node)]
            before = _names(folders)
            yield folders
            if before - _names(folders):
                raise LabFailure(f"files of {node} can be taken away {PROCESSES_ALONE}")

    def limit_files(self, node: str, size_bytes: int | None) -> int | None:
        raise LabFailure(f"the files of {node} can be limited {PROCESSES_ALONE}")

    def freeze(self, node: str) -> Sequence[str]:
        raise LabFailure(f"the disk of {node} can be made read-only {PROCESSES_ALONE}")

    def hold_writes(self, node: str, delay_ms: int) -> None:
        raise LabFailure(f"writes of {node} can be held back {PROCESSES_ALONE}")

    def held_writes(self, node: str) -> int | None:
        return None

    def release_writes(self, node: str) -> int:
        return 0


def _below_home(node: str, log_dir: Path) -> tuple[str, ...]:
    """`nodes/b1/data/disk1` of the run is `data/disk1` of the broker's home."""
    parts = log_dir.parts
    return parts[len(parts) - parts[::-1].index(node) :]


def _names(folders: Sequence[Path]) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*")}
