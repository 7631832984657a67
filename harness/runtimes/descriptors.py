"""File descriptors of a living process, and how many it may have (prlimit(2))."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import psutil

from urteil.chaos.views import Descriptors, LabFailure

NOFILE = "Max open files"
TIMEOUT_S = 10


def descriptors(node: str, pid: int) -> Descriptors:
    """LabFailure where the process is not to be seen from here."""
    try:
        open_now = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        soft, _ = _limits(pid)
    except OSError as error:
        raise LabFailure(f"the file descriptors of {node} are not to be seen: {error}") from error
    free = next(number for number in range(len(open_now) + 1) if number not in open_now)
    return Descriptors(node=node, open=len(open_now), lowest_free=free, limit=soft)


def limit_descriptors(node: str, pid: int, most: int) -> Descriptors:
    """Set the soft limit, up to the hard one, while it runs."""
    try:
        _, hard = _limits(pid)
        _set(pid, most, hard)
    except (OSError, ValueError, psutil.Error, subprocess.SubprocessError) as error:
        raise LabFailure(f"{node} cannot be limited to {most} descriptors: {error}") from error
    return descriptors(node, pid)


def _limits(pid: int) -> tuple[int, int]:
    """Soft and hard, as anybody may read them."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    words = next(line for line in lines if line.startswith(NOFILE)).removeprefix(NOFILE).split()
    soft, hard = (resource.RLIM_INFINITY if w == "unlimited" else int(w) for w in words[:2])
    return soft, hard


def _set(pid: int, soft: int, hard: int) -> None:
    """As ourselves, or as the user whose process it is: root alone may not do it for others."""
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    except PermissionError:
        owner = psutil.Process(pid)
        subprocess.run(
            ["prlimit", f"--pid={pid}", f"--nofile={soft}:{hard}"],
            user=owner.uids().real,
            group=owner.gids().real,
            extra_groups=[],
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
