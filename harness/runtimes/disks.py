"""Brokers' disks, as far as a runtime can reach them: implements `chaos.controls.DiskControls`."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from urteil.chaos.views import LabFailure, NodeStatus
from urteil.harness.runtimes.slow_disk import SlowDisk

LogDirs = Callable[[str], Sequence[Path]]
COMMAND_S = 10.0
FREEZE = """
for one; do
    mount --bind "$one" "$one"
    mount -o remount,bind,ro "$one"
done
cat /proc/self/mounts
"""
"""Makes the folders that it is given read-only, and tells what is mounted then."""


@cache
def can_mount() -> bool:
    """Whether a process of ours may have mounts of its own (root, and the kernel agrees)."""
    if os.geteuid() or shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, timeout=COMMAND_S)
    return tried.returncode == 0


class ProcessDisks:
    """Folders of this machine, and what its kernel lets the broker's process do to them."""

    def __init__(self, log_dirs: LogDirs, status: Callable[[str], NodeStatus]) -> None:
        self._log_dirs = log_dirs
        self._status = status
        self._slow: dict[str, SlowDisk] = {}

    @contextmanager
    def opened(self, node: str) -> Iterator[Sequence[Path]]:
        yield self._log_dirs(node)

    def limit_files(self, node: str, size_bytes: int | None) -> int | None:
        """By RLIMIT_FSIZE of the living process: its soft limit, so that it can be taken back."""
        pid = self._pid(node)
        try:
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            soft = hard if size_bytes is None else size_bytes
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
            told, _ = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        except OSError as error:
            raise LabFailure(f"the file size limit of {node} cannot be set: {error}") from error
        return None if told == resource.RLIM_INFINITY else told

    def freeze(self, node: str) -> Sequence[str]:
        """A read-only bind mount over each, in the process's own mount namespace.

        All by one process in there: the broker may end by the first, and its namespace with it.
        """
        if not can_mount():
            raise LabFailure("read-only disks need root with the right to mount on this machine")
        enter = ["nsenter", "--mount", "--target", str(self._pid(node)), "--"]
        argv = [*enter, "sh", "-ec", FREEZE, "sh", *map(str, self._log_dirs(node))]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_S)
        if done.returncode:
            raise LabFailure(f"the disk of {node} stays writable: {done.stderr.strip()}")
        told = {words[1]: words[3] for words in map(str.split, done.stdout.splitlines())}
        return [f"{one} is mounted {told.get(str(one), '')[:2]}" for one in self._log_dirs(node)]

    def hold_writes(self, node: str, delay_ms: int) -> None:
        self.release_writes(node)
        self._slow[node] = SlowDisk(self._pid(node), self._log_dirs(node), delay_ms)

    def held_writes(self, node: str) -> int | None:
        slow = self._slow.get(node)
        return None if slow is None else slow.held()

    def release_writes(self, node: str) -> int:
        slow = self._slow.pop(node, None)
        return 0 if slow is None else slow.close()

    def _pid(self, node: str) -> int:
        pid = self._status(node).pid
        if pid is None:
            raise LabFailure(f"{node} does not run")
        return pid
