"""Debian packages: one `apt-get` at a time, after other apt processes have ended.

A first boot runs unattended upgrades, and apt fails at once where another process holds one of its
four locks (`DPkg::Lock::Timeout` only waits for dpkg's two). So this module checks the locks first
(F_GETLK names the holder without locking), and repeats an `apt-get` that lost the race within the
same deadline.

`.ci/setup` runs this file before there is a virtual environment, so it uses the standard library
only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

LOCKS = (
    Path("/var/lib/dpkg/lock-frontend"),
    Path("/var/lib/dpkg/lock"),
    Path("/var/lib/apt/lists/lock"),
    Path("/var/cache/apt/archives/lock"),
)
LOCK_WAIT_S = 600.0
POLL_S = 0.5
COMMAND_S = 900.0
FLOCK = "hhqqi"
"""`struct flock` of Linux on 64 bits: type, whence, start, length, pid."""
LOST_RACE = re.compile(r"Could not get lock|Unable to (acquire|lock)|is another process using it")
INTERRUPTED = "dpkg was interrupted"
"""What apt-get reports while an installation is half done, because its process was killed."""
ADDED_SIZE = re.compile(r"After this operation, ([\d.,]+) ([kMG]?B) of additional")
MEGABYTES = {"B": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}
TERMINAL: TextIO | None = None
"""The terminal of a test runner that captures standard error; receives the reports of a wait."""


class AptError(Exception):
    """apt-get failed; the text ends with its last lines."""


def print_progress(line: str) -> None:
    """Print one line of progress on standard error."""
    print(f"setup: {line}", file=sys.stderr, flush=True)


def print_wait(line: str) -> None:
    """Print a line as `print_progress` does, and also on the terminal of a test runner."""
    print_progress(line)
    if TERMINAL is not None:
        print(f"\nsetup: {line}", file=TERMINAL, flush=True)


def install(package: str) -> None:
    """Install one Debian package, and report its size and time. Raises AptError when that fails.

    Waits up to ten minutes for the locks of another apt, and names its process.
    """
    begin = time.monotonic()
    deadline = begin + LOCK_WAIT_S
    argv = ["install", "-y", "-q", "--no-install-recommends", package]
    try:
        output = _apt_get(argv, deadline)
    except AptError:  # the package lists may be missing or old
        _apt_get(["update", "-q"], deadline)
        output = _apt_get(argv, deadline)
    print_progress(
        f"{package}: {_added_megabytes(output):.0f} MB, {time.monotonic() - begin:.0f} s"
    )


def _apt_get(argv: Sequence[str], deadline: float) -> str:
    """The output of apt-get. A lock lost before `deadline` is retried, and an interrupted
    installation is completed first; other failures raise AptError."""
    command = ["apt-get", "-o", f"DPkg::Lock::Timeout={LOCK_WAIT_S:.0f}", *argv]
    while True:
        process = _run(command, deadline)
        if process.returncode == 0:
            return process.stdout
        if INTERRUPTED in process.stdout and time.monotonic() < deadline:
            print_progress("an earlier installation was interrupted; dpkg completes it")
            process = _run(["dpkg", "--configure", "-a"], deadline)
            if process.returncode == 0:
                continue
        if not LOST_RACE.search(process.stdout) or time.monotonic() >= deadline:
            tail = "\n".join(process.stdout.strip().splitlines()[-8:])
            raise AptError(f"{' '.join(map(str, process.args))} failed:\n{tail}")


def _run(command: Sequence[str], deadline: float) -> subprocess.CompletedProcess[str]:
    """Run `command` once no other process holds apt's locks."""
    wait_for_locks(LOCKS, deadline)
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=LOCK_WAIT_S + COMMAND_S,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AptError(f"{' '.join(command)}: {error}") from error


def wait_for_locks(
    locks: Sequence[Path], deadline: float, report: Callable[[str], None] = print_wait
) -> None:
    """Return when no other process holds one of `locks`. Raises AptError at `deadline` (monotonic).

    Reports each holder once.
    """
    reported = set()
    while holder := next(filter(None, map(_holder, locks)), None):
        if holder not in reported:
            reported.add(holder)
            left_s = deadline - time.monotonic()
            report(f"waiting for another apt: {holder}; up to {left_s:.0f} s")
        if time.monotonic() >= deadline:
            raise AptError(
                f"another apt is still at work: {holder}; wait until it has ended, or end it, "
                "and run this again"
            )
        time.sleep(POLL_S)


def _holder(lock: Path) -> str | None:
    """`process 12 (apt-get) holds LOCK`, or None where no process does."""
    try:
        with lock.open("rb") as file:
            lock_request = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(
                FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, lock_request)
            )
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EACCES):
            return None  # no apt has run here yet, or apt itself will refuse
        raise
    if kind == fcntl.F_UNLCK:
        return None
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        name = "ended, or in another container"
    return f"process {pid} ({name}) holds {lock}"


def _added_megabytes(output: str) -> float:
    """The disk space that apt announced: 0 for an installed package."""
    match = ADDED_SIZE.search(output)
    return float(match[1].replace(",", "")) * MEGABYTES[match[2]] if match else 0.0


if __name__ == "__main__":
    try:
        for package in sys.argv[1:]:
            install(package)
    except AptError as failure:
        sys.exit(f"setup: {failure}")
