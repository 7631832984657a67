"""Limits of a living process of any user (prlimit(2))."""

from __future__ import annotations

import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from urteil.chaos.observations import LabFailure

TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Limit:
    """The names of a limit: the kernel's, `resource`'s and prlimit(1)'s."""

    title: str
    number: int
    option: str


DESCRIPTORS = Limit("Max open files", resource.RLIMIT_NOFILE, "nofile")
FILE_BYTES = Limit("Max file size", resource.RLIMIT_FSIZE, "fsize")


def read_limits(pid: int, limit: Limit) -> tuple[int, int]:
    """Both limits, which every user may read. Raises OSError when the process is not visible."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    line = next(line for line in lines if line.startswith(limit.title))
    words = line.removeprefix(limit.title).split()
    soft, hard = (resource.RLIM_INFINITY if w == "unlimited" else int(w) for w in words[:2])
    return soft, hard


def change_limit(node: str, pid: int, limit: Limit, soft: int | None) -> int:
    """Set the soft limit of a running process, None for the hard one. Returns the new soft limit.
    Raises LabFailure if that fails."""
    try:
        _, hard = read_limits(pid, limit)
        _set(pid, limit, hard if soft is None else soft, hard)
        return read_limits(pid, limit)[0]
    except (OSError, ValueError, psutil.Error, subprocess.SubprocessError) as error:
        current = f"{limit.title.lower()}: {'any' if soft is None else soft}"
        raise LabFailure(f"{node} cannot be limited ({current}): {error}") from error


def _set(pid: int, limit: Limit, soft: int, hard: int) -> None:
    """Set the limits as this user, or as the user of the process: even root may lack the
    capability."""
    try:
        resource.prlimit(pid, limit.number, (soft, hard))
    except PermissionError:
        owner = psutil.Process(pid)
        word = "unlimited" if soft == resource.RLIM_INFINITY else soft
        subprocess.run(
            ["prlimit", f"--pid={pid}", f"--{limit.option}={word}:"],
            user=owner.uids().real,
            group=owner.gids().real,
            extra_groups=[],
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
