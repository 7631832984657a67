"""File descriptors of a living process, and how many it may have (prlimit(2))."""

from __future__ import annotations

import os
import resource

from urteil.chaos.controls import Descriptors, LabFailure


def descriptors(node: str, pid: int | None) -> Descriptors:
    """LabFailure where the process is not to be seen from here."""
    try:
        open_now = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        soft, _ = resource.prlimit(pid or -1, resource.RLIMIT_NOFILE)
    except (AttributeError, OSError) as error:
        raise LabFailure(f"the file descriptors of {node} are not to be seen: {error}") from error
    free = next(number for number in range(len(open_now) + 1) if number not in open_now)
    return Descriptors(node=node, open=len(open_now), lowest_free=free, limit=soft)


def limit_descriptors(node: str, pid: int | None, most: int) -> Descriptors:
    """Set the soft limit, up to the hard one, while it runs."""
    try:
        _, hard = resource.prlimit(pid or -1, resource.RLIMIT_NOFILE)
        resource.prlimit(pid or -1, resource.RLIMIT_NOFILE, (most, hard))
    except (AttributeError, OSError, ValueError) as error:
        raise LabFailure(f"{node} cannot be limited to {most} descriptors: {error}") from error
    return descriptors(node, pid)
