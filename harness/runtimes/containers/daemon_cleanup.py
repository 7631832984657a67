"""Removes the remains of a dead daemon: processes, mounts, bridges, firewall rules."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from urteil.chaos.waiting import until
from urteil.harness.runtimes.containers.bridge import remove_bridge
from urteil.harness.runtimes.containers.firewall import remove_rules

CGROUPS = Path("/sys/fs/cgroup")
PROGRAMS = (b"dockerd", b"containerd")
KILL_S = 15.0
POLL_S = 0.05


def record_daemon(run: Path, data: Path) -> None:
    """Record the daemon of a data folder, for `clean_after_last`."""
    data.with_suffix(".run").write_text(str(run))


def clean_after_last(data: Path) -> None:
    """Remove the remains of the last daemon on this data folder, in case its owner was killed."""
    with suppress(FileNotFoundError):
        run = Path(data.with_suffix(".run").read_text())
        if run.name.startswith("urteil-"):
            clean_up(run, data)


def clean_up(run: Path, data: Path) -> None:
    """End and remove everything of a daemon that died in any way."""
    _kill_group(f"/{run.name}")
    _kill_children_of(run)
    _unmount(run)
    _unmount(data)
    remove_rules(run.name)
    for name in [run.name, *_bridges_of(data)]:
        remove_bridge(name)
    shutil.rmtree(run, ignore_errors=True)


def _bridges_of(data: Path) -> set[str]:
    """Bridges of a dead daemon's networks, which it keeps for its next start."""
    try:
        stored = (data / "network" / "files" / "local-kv.db").read_bytes()
    except FileNotFoundError:
        return set()
    return {name.decode() for name in re.findall(rb'"BridgeName":"(br-[0-9a-f]{12})"', stored)}


def _kill_group(group: str) -> None:
    """Kill every process of the containers; control groups of version 1 and 2."""
    roots: list[Path] = []

    def kill_members() -> bool:
        roots[:] = (*CGROUPS.glob(group[1:]), *CGROUPS.glob("*" + group))
        pids = {pid for root in roots for pid in _members(root)}
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    if until(kill_members, deadline_s=KILL_S, poll_s=POLL_S):
        _remove_groups(roots)


def _members(root: Path) -> list[int]:
    pids: list[int] = []
    for file in root.rglob("cgroup.procs"):
        with suppress(OSError):
            pids += [int(pid) for pid in file.read_text().split()]
    return pids


def _remove_groups(roots: list[Path]) -> None:
    for root in roots:
        for folder in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
            with suppress(OSError):
                folder.rmdir()
        with suppress(OSError):
            root.rmdir()


def _kill_children_of(run: Path) -> None:
    """Kill containerd and its shims, recognised by name and by paths in their arguments. They
    survive a killed daemon. Its docker-proxies end by themselves."""
    folder = str(run).encode() + b"/"
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):
                line = Path(f"/proc/{name}/cmdline").read_bytes()
                program = line.split(b"\0")[0].rpartition(b"/")[2]
                if folder in line and program.startswith(PROGRAMS):
                    os.kill(int(name), signal.SIGKILL)


def _unmount(folder: Path) -> None:
    """Unmount everything below `folder` that a killed daemon had mounted."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4] for line in lines]
    inside = [point for point in points if Path(point).is_relative_to(folder)]
    for point in sorted(inside, reverse=True):
        subprocess.run(["umount", "-l", point], capture_output=True, timeout=20)
