"""Limits of a living process (prlimit(2)), whosever it is."""

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
    """What the kernel, `resource` and prlimit(1) call it."""

    title: str
    number: int
    option: str


DESCRIPTORS = Limit("Max open files", resource.RLIMIT_NOFILE, "nofile")
FILE_BYTES = Limit("Max file size", resource.RLIMIT_FSIZE, "fsize")


def soft_and_hard(pid: int, limit: Limit) -> tuple[int, int]:
    """As anybody may read them; OSError when the process is not to be seen."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    line = next(line for line in lines if line.startswith(limit.title))
    words = line.removeprefix(limit.title).split()
    soft, hard = (resource.RLIM_INFINITY if w == "unlimited" else int(w) for w in words[:2])
    return soft, hard


def change(node: str, pid: int, limit: Limit, soft: int | None) -> int:
    """Set the soft limit while the process runs, None: as high as the hard one; what it is then.

    LabFailure where that cannot be done.
    """
    try:
        _, hard = soft_and_hard(pid, limit)
        _set(pid, limit, hard if soft is None else soft, hard)
        return soft_and_hard(pid, limit)[0]
    except (OSError, ValueError, psutil.Error, subprocess.SubprocessError) as error:
        told = f"{limit.title.lower()}: {'any' if soft is None else soft}"
        raise LabFailure(f"{node} cannot be limited ({told}): {error}") from error


def _set(pid: int, limit: Limit, soft: int, hard: int) -> None:
    """As ourselves, or as the user whose process it is: root alone may not do it for others."""
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
