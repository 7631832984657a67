"""Kills every process of a lab when the lab ends in any way, SIGKILL included.

Every process that a lab starts inherits `URTEIL_LAB=<token>` in its environment. The reaper is a
small process outside the lab's process group that reads from a pipe whose other end only the lab
holds. When the pipe closes, it kills every process with the token. Nothing has to be registered, so
no new process is ever missed. Containers carry the token as a label; the lab sends the address of
their engine over the pipe, and so do agents on hosts the folder of their run.

`start_reaper` runs this file as a script, which imports nothing of ours and so starts at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

VARIABLE = "URTEIL_LAB"
LABEL = "org.urteil.lab"
FOLDER = "folder "
QUIET_SWEEPS = 4
SWEEP_S = 0.1
DEADLINE_S = 5.0

_lock = threading.Lock()
_reaper: subprocess.Popen[bytes] | None = None
_owner_pid = 0


def start_reaper() -> str:
    """The token of this lab process; starts its reaper the first time.

    The token is put into this process's environment too, so that whatever the lab starts from
    now on (clients, Spark) is covered, and writes bytecode (`keep_bytecode`).
    """
    from urteil.harness.bytecode_cache import keep_bytecode

    global _reaper, _owner_pid
    with _lock:
        if _reaper is None or _owner_pid != os.getpid():
            token = uuid.uuid4().hex
            env = {name: value for name, value in os.environ.items() if name != VARIABLE}
            _reaper = subprocess.Popen(
                [sys.executable, "-I", __file__, token],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=env,
            )
            _owner_pid = os.getpid()
            os.environ[VARIABLE] = token
            keep_bytecode()
        return os.environ[VARIABLE]


def sweep_containers(url: str) -> None:
    """Let the reaper also remove containers and networks with the token from this engine."""
    _send(url)


def sweep_folder(folder: Path) -> None:
    """Let the reaper also remove this folder, once nothing with the token runs."""
    _send(f"{FOLDER}{folder}")


def _send(line: str) -> None:
    assert _reaper is not None
    assert _reaper.stdin is not None
    _reaper.stdin.write(line.encode() + b"\n")
    _reaper.stdin.flush()


def _let_go_in_child() -> None:
    """Close the pipe in a forked child, which must not keep it open after the lab's death."""
    if _reaper is not None and _reaper.stdin is not None:
        os.close(_reaper.stdin.fileno())


os.register_at_fork(after_in_child=_let_go_in_child)


def holders(token: str) -> list[int]:
    """Processes of this user that carry the token, this one left out."""
    variable = f"{VARIABLE}={token}".encode()
    return [pid for pid in _pids() if pid != os.getpid() and variable in _environment(pid)]


def _pids() -> list[int]:
    if Path("/proc/self").exists():
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    import psutil

    return list(psutil.pids())


def _environment(pid: int) -> list[bytes]:
    """The environment of a process. Empty for a process that ended, a zombie, or one of another
    user."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except FileNotFoundError:
        return [] if Path("/proc/self").exists() else _environment_elsewhere(pid)
    except OSError:
        return []


def _environment_elsewhere(pid: int) -> list[bytes]:
    import psutil

    try:
        environment = psutil.Process(pid).environ()
    except psutil.Error:
        return []
    return [f"{name}={value}".encode() for name, value in environment.items()]


def reap(token: str) -> None:
    """Kill holders until several sweeps in a row found none: one may just have forked another."""
    deadline = time.monotonic() + DEADLINE_S
    quiet = 0
    while quiet < QUIET_SWEEPS and time.monotonic() < deadline:
        pids = holders(token)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        quiet = 0 if pids else quiet + 1
        time.sleep(SWEEP_S)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    token = sys.argv[1]
    received = b""
    while chunk := os.read(0, 4096):
        received += chunk
    lines = dict.fromkeys(received.decode().splitlines())
    sweeps = [_sweep(url, token) for url in lines if not url.startswith(FOLDER)]
    reap(token)
    for folder in (line.removeprefix(FOLDER) for line in lines if line.startswith(FOLDER)):
        shutil.rmtree(folder, ignore_errors=True)
    for sweep in sweeps:
        sweep.wait()


def _sweep(url: str, token: str) -> subprocess.Popen[bytes]:
    script = Path(__file__).parent / "runtimes" / "containers" / "label_sweep.py"
    argv = [sys.executable, "-I", str(script), url, f"{LABEL}={token}"]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)


if __name__ == "__main__":
    main()
