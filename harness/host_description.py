"""A description of the lab's machine in one line."""

from __future__ import annotations

import os
import platform


def describe_host() -> str:
    """System, release, architecture, processors that this process may use, and memory in GB."""
    may = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{platform.system()} {platform.release()} {platform.machine()}, {may} processors, "
        f"{memory:.0f} GB, Python {platform.python_version()}"
    )
