"""The file descriptors of a living process, and their limit."""

from __future__ import annotations

import os

from urteil.chaos.observations import Descriptors, LabFailure
from urteil.harness.runtimes.process_limits import DESCRIPTORS, change_limit, read_limits


def read_descriptors(node: str, pid: int) -> Descriptors:
    """Raises LabFailure when the process is not visible from here."""
    try:
        open_now = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        soft, _ = read_limits(pid, DESCRIPTORS)
    except OSError as error:
        raise LabFailure(f"the file descriptors of {node} are not to be seen: {error}") from error
    free = next(number for number in range(len(open_now) + 1) if number not in open_now)
    return Descriptors(node=node, open=len(open_now), lowest_free=free, limit=soft)


def limit_descriptors(node: str, pid: int, most: int) -> Descriptors:
    """Set the soft limit, up to the hard one, while the process runs."""
    change_limit(node, pid, DESCRIPTORS, most)
    return read_descriptors(node, pid)
