"""The process that owns an engine: `python -m urteil.harness.runtimes.containers.engine_process
[stay]`.

It prints one line of JSON (`own_engine.Started`) when the engine answers or failed to start. It
ends the engine on SIGTERM and, without `stay`, when its standard input closes. If this process is
killed, the daemon gets SIGTERM by its parent-death signal.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

import msgspec

from urteil.harness.runtimes.containers.daemon import Daemon, DaemonFailure
from urteil.harness.runtimes.containers.own_engine import Started

POLL_S = 1.0


def own_daemon(stays: bool, wake: int) -> int:
    """Start the engine, report, wait, and end it. `wake` becomes readable after a signal."""
    try:
        daemon = Daemon.start()
    except (DaemonFailure, OSError) as problem:
        _report_start(Started(problem=str(problem)))
        return 1
    try:
        daemon.wait_until_it_answers()
        _report_start(Started(url=daemon.url, data=str(daemon.data), log=str(daemon.log)))
        watched = [wake] if stays else [wake, 0]
        while daemon.lives() and not select.select(watched, [], [], POLL_S)[0]:
            continue
    except DaemonFailure as problem:
        _report_start(Started(problem=str(problem)))
        return 1
    finally:
        daemon.stop()
    return 0


def _report_start(started: Started) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(started) + b"\n")
    sys.stdout.buffer.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main() -> int:
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(write)
    os.chdir(Path("/"))
    return own_daemon("stay" in sys.argv[1:], read)


if __name__ == "__main__":
    sys.exit(main())
