"""Files of nodes on hosts: transfers of their folders, and the disks of brokers.

Folders are sent as compressed archives in chunks, since index files end with megabytes of zeros.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from urteil.chaos.observations import LabFailure, NodeState, NodeStatus
from urteil.harness.runtimes.disks import LogDirs, ProcessDisks, path_in_home
from urteil.harness.runtimes.folder_archives import extract
from urteil.harness.runtimes.hosts.messages import CHUNK_BYTES

PACK_S = 300.0
QUICK = 1
Call = Callable[..., Any]
"""Calls an operation of the agent of a node's host, as `HostConnection.call`."""


def fetch_folder(call: Call, node: str, folder: Path) -> None:
    """Copy the files of a dead node into `folder`."""
    packed = call("pack", node, deadline_s=PACK_S)
    with tempfile.TemporaryFile(dir=folder) as file:
        while chunk := call("read", packed, file.tell()):
            file.write(chunk)
        file.seek(0)
        extract(file, folder)


def replace_folder(call: Call, node: str, folder: Path) -> None:
    """Replace the files of a dead node by those of `folder`."""
    with tempfile.TemporaryFile(dir=folder.parent) as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=QUICK) as tar:
            tar.add(folder, arcname=node)
        file.seek(0)
        offset = 0
        while chunk := file.read(CHUNK_BYTES):
            call("write", f"{node}.tar.gz", offset, chunk)
            offset += len(chunk)
    call("replace", node, f"{node}.tar.gz", deadline_s=PACK_S)


class HostFolders(Protocol):
    """The runtime's access to the nodes of hosts."""

    def status(self, node: str) -> NodeStatus: ...

    def local_pid(self, node: str) -> int: ...

    def open_home(self, node: str) -> AbstractContextManager[Path]:
        """The files of a dead node as a folder of this machine. Changes in the block are copied to
        the node at its end."""
        ...


class HostDisks(ProcessDisks):
    """The disks of brokers on hosts. Only files of a dead broker can be changed."""

    def __init__(self, log_dirs: LogDirs, runtime: HostFolders) -> None:
        super().__init__(log_dirs, runtime.local_pid)
        self._runtime = runtime

    @contextmanager
    def open_log_directories(self, node: str) -> Iterator[Sequence[Path]]:
        if self._runtime.status(node).state is not NodeState.DEAD:
            raise LabFailure(f"files of {node} can be changed on its host only while it is dead")
        with self._runtime.open_home(node) as home:
            yield [path_in_home(home, node, log_dir) for log_dir in self._log_dirs(node)]
