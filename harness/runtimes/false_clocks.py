"""Nodes with wall clocks of their own: libfaketime, and the file that it rereads once a second.

The library and the file are on the machine of the node. Only the wall clock is false: monotonic
clocks, times of files and durations of waits stay true.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

FILE = "faketime"
FOLDER = "clock"
SLEEP_FILE = "sitecustomize.py"
"""Written at every start."""
CACHE_S = 1
FILE_VARIABLE = "FAKETIME_TIMESTAMP_FILE"
SHARED = Path("/dev/shm")
TRUE_SLEEP = """# libfaketime takes clock_nanosleep on the monotonic clock for a faked one.
import select
import time


def sleep(seconds):
    select.select([], [], [], seconds)


time.sleep = sleep
"""


@dataclass(frozen=True, slots=True)
class FalseClocks:
    """The means of a runtime. Paths are absolute, or relative to the node's folder. `packages` are
    the folders from which its Python imports. `replace` replaces a file directly in the folder of a
    node, which may run."""

    library: Callable[[], str]
    packages: tuple[str, ...]
    replace: Callable[[str, str, str], None]

    def set_offset(self, node: str, offset_s: float) -> None:
        self.replace(node, FILE, f"{offset_s:+.3f}s\n")

    def env(self, node_dir: Path, home: Path) -> dict[str, str]:
        """The environment of a node, which sees its folder `node_dir` as `home`. Writes the files
        for it, set to true time."""
        (node_dir / FOLDER).mkdir(parents=True, exist_ok=True)
        (node_dir / FOLDER / SLEEP_FILE).write_text(TRUE_SLEEP)
        replace_file(node_dir / FILE, "+0\n")
        packages = [home / path for path in (FOLDER, *self.packages)]
        return {
            "LD_PRELOAD": str(home / self.library()),
            FILE_VARIABLE: str(home / FILE),
            "FAKETIME_CACHE_DURATION": str(CACHE_S),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Or a JVM's waits on the monotonic clock end at once.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": os.pathsep.join(map(str, packages)),
        }


def replace_file(path: Path, text: str) -> None:
    """At once, for readers."""
    part = path.with_name(f"{path.name}.{threading.get_ident()}.part")
    part.write_text(text)
    part.replace(path)


def remove_dead_clocks(env: Mapping[str, str]) -> None:
    """Call it before a process starts with this environment. If the process has a false clock,
    remove the shared memory of libfaketime of killed processes, since the process may get the id of
    one."""
    for file in SHARED.glob("*faketime_s[eh]m_*") if FILE_VARIABLE in env else ():
        pid = file.name.rpartition("_")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            with contextlib.suppress(OSError):  # it is another user's, or was just removed
                file.unlink()
