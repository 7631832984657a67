"""Brokers' disks, if a runtime can reach them. Implements `chaos.controls.DiskControls`."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from urteil.chaos.flushed_files import FlushedFiles
from urteil.chaos.observations import LabFailure
from urteil.harness.runtimes.process_limits import FILE_BYTES, change_limit
from urteil.harness.runtimes.slow_disk import SlowDisk, find_written_files

LogDirs = Callable[[str], Sequence[Path]]
COMMAND_S = 10.0
FREEZE = """
aside=$(mktemp -d)
for folder; do
    mount --bind "$folder" "$aside"
    mount -o remount,bind,ro "$aside"
    mount --move "$aside" "$folder"
done
rmdir "$aside"
"""
"""Mounts the folders in its arguments read-only. Each mount is prepared elsewhere: a mount through
which a broker has opened a file for writing cannot become read-only."""


def flush_record(log_dirs: Sequence[Path]) -> Path:
    """The record of the data that a node has flushed, beside its log directories. If it is
    requested, the cluster creates it before the node starts."""
    return log_dirs[0].parent / "flushes"


@cache
def can_mount() -> bool:
    """Whether processes of the lab may have mounts of their own (root, and a kernel that permits
    it)."""
    if os.geteuid() or shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, timeout=COMMAND_S)
    return tried.returncode == 0


def has_own_mounts(pid: int) -> bool:
    """Whether the process has a mount namespace of its own."""
    return os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")


def path_in_home(home: Path, node: str, log_dir: Path) -> Path:
    """The path of `nodes/b1/data/disk1` of the run in the home of b1: `data/disk1`."""
    names = log_dir.parts
    return home.joinpath(*names[len(names) - names[::-1].index(node) :])


class ProcessDisks:
    """Folders of this machine, and the kernel's limits on a broker's process."""

    def __init__(self, log_dirs: LogDirs, pid: Callable[[str], int]) -> None:
        """`pid` returns a running node's process id; it raises LabFailure for one on another
        machine."""
        self._log_dirs = log_dirs
        self._pid = pid
        self._slow: dict[str, SlowDisk] = {}

    @contextmanager
    def open_log_directories(self, node: str) -> Iterator[Sequence[Path]]:
        yield self._log_dirs(node)

    def flushed_files(self, node: str) -> FlushedFiles | None:
        record = flush_record(self._log_dirs(node))
        if not record.exists():
            return None
        if not record.stat().st_size:
            raise LabFailure(f"{node} did not load the library that records flushes in {record}")
        return FlushedFiles(record)

    def broker_log_dirs(self, node: str) -> Sequence[Path]:
        """The log directories, by the broker's own names."""
        return self._log_dirs(node)

    def limit_file_size(self, node: str, size_bytes: int | None) -> int | None:
        """Set RLIMIT_FSIZE of the living process. Only the soft limit, so that it can be raised
        again."""
        limit = change_limit(node, self._pid(node), FILE_BYTES, size_bytes)
        return None if limit == resource.RLIM_INFINITY else limit

    def make_read_only(self, node: str) -> Sequence[str]:
        """Mount each log directory read-only over itself, in the process's own mount namespace. One
        process mounts all of them and reports to a file that it opened before: the broker may end
        after the first mount, and its namespace with it."""
        if not can_mount():
            raise LabFailure("read-only disks need root with the right to mount on this machine")
        pid, folders = self._pid(node), self.broker_log_dirs(node)
        if not has_own_mounts(pid):
            raise LabFailure(f"{node} has no mounts of its own: they would be this machine's")
        enter = ["nsenter", "--mount", "--target", str(pid), "--"]
        argv = [*enter, "sh", "-ec", FREEZE, "sh", *map(str, folders)]
        with Path(f"/proc/{pid}/mounts").open() as mounts:
            process = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_S)
            if process.returncode:
                raise LabFailure(f"the disk of {node} stays writable: {process.stderr.strip()}")
            modes = {words[1]: words[3] for words in map(str.split, mounts)}
        return [f"{folder} is mounted {modes.get(str(folder), '')[:2]}" for folder in folders]

    def delay_writes(self, node: str, delay_ms: int) -> None:
        self.stop_delaying_writes(node)
        with self.open_log_directories(node) as log_dirs:
            files = [
                own_path / path.relative_to(log_dir)
                for log_dir, own_path in zip(log_dirs, self.broker_log_dirs(node), strict=True)
                for path in find_written_files(log_dir)
            ]
        self._slow[node] = SlowDisk(self._pid(node), files, delay_ms)

    def delayed_writes(self, node: str) -> int | None:
        slow = self._slow.get(node)
        return None if slow is None else slow.delayed_calls()

    def stop_delaying_writes(self, node: str) -> int:
        slow = self._slow.pop(node, None)
        return 0 if slow is None else slow.close()
