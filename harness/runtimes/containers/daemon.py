"""One dockerd with a data folder, a socket and settings of its own.

It does not change the machine's forwarding or `docker0`. In the firewall it changes only two rules
about its own networks. Containers reach each other in their networks and are reached by published
ports; they do not reach the internet. Builds use the machine's own network.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from urteil.chaos.waiting import until
from urteil.harness.child_process import await_exit
from urteil.harness.dependencies.installation import cache_dir
from urteil.harness.runtimes.containers.bridge import add_bridge, remove_bridge
from urteil.harness.runtimes.containers.daemon_cleanup import (
    clean_after_last,
    clean_up,
    record_daemon,
)
from urteil.harness.runtimes.containers.firewall import add_rules, remove_rules

POOLS = "198.18.0.0/15"
SLOTS = 8
START_S = 60.0
API_STOP_S = 15
STOP_S = 15.0
POLL_S = 0.05
TAIL_LINES = 15
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class DaemonFailure(Exception):
    """The daemon did not start. The message has the end of its log."""


@dataclass(slots=True, kw_only=True)
class Daemon:
    """A started dockerd. The name of its folder `run` is also that of its bridge and of the control
    group of all its containers."""

    process: subprocess.Popen[bytes]
    data: Path
    run: Path
    log: Path

    @classmethod
    def start(cls) -> Daemon:
        """Start a daemon on the first free data folder. Call it from the main thread.

        The parent-death signal fires when the starting thread ends.
        """
        data, lock = _free_data_folder()
        clean_after_last(data)
        # A daemon that finds an earlier daemon's networks there deletes the machine's docker0.
        shutil.rmtree(data / "network", ignore_errors=True)
        run = Path(_make_short_folder(), run_name())
        run.mkdir(mode=0o700)
        record_daemon(run, data)
        log = data.with_suffix(".log")
        (run / "daemon.json").write_text(json.dumps(_settings(data, run)))
        try:
            add_bridge(run.name)
            add_rules(run.name)
            with lock, log.open("wb") as output:
                process = subprocess.Popen(
                    _argv(run),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=[lock.fileno()],
                    preexec_fn=_end_with_parent,
                )
        except BaseException:
            remove_rules(run.name)
            remove_bridge(run.name)
            shutil.rmtree(run, ignore_errors=True)
            raise
        return cls(process=process, data=data, run=run, log=log)

    @property
    def url(self) -> str:
        return f"unix://{self.run}/docker.sock"

    def lives(self) -> bool:
        return self.process.poll() is None

    def wait_until_it_answers(self) -> None:
        """Raises DaemonFailure, with the end of its log, if it ends or does not answer within 60
        s."""
        answers = until(
            lambda: _answers(self.run / "docker.sock"),
            lambda answers: answers or not self.lives(),
            deadline_s=START_S,
            poll_s=POLL_S,
        )
        if not self.lives():
            raise DaemonFailure(f"dockerd ended with {self.process.returncode}:\n{self._tail()}")
        if not answers:
            raise DaemonFailure(f"dockerd did not answer in {START_S:g} s:\n{self._tail()}")

    def stop(self) -> None:
        """Remove its containers and networks, then end it and its processes. Images stay."""
        if self.lives():
            with suppress(Exception):  # an engine that no longer answers is killed below
                self._empty()
            self.process.terminate()
        await_exit(self.process, deadline_s=STOP_S)
        clean_up(self.run, self.data)

    def _empty(self) -> None:
        import docker

        client = docker.DockerClient(base_url=self.url, timeout=API_STOP_S)
        for container in client.containers.list(all=True, ignore_removed=True):
            with suppress(docker.errors.APIError):
                container.remove(force=True, v=True)
        client.networks.prune()

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return "\n".join(lines[-TAIL_LINES:])


def _argv(run: Path) -> list[str]:
    """With namespaces of its own, in case a containerd runs already."""
    spaces = ["--containerd-namespace", run.name, "--containerd-plugins-namespace", f"{run.name}-p"]
    return ["dockerd", "--config-file", str(run / "daemon.json"), *spaces]


def _settings(data: Path, run: Path) -> dict[str, object]:
    return {
        "data-root": str(data),
        "exec-root": str(run / "exec"),
        "pidfile": str(run / "pid"),
        "hosts": [f"unix://{run}/docker.sock"],
        "group": str(os.getgid()),
        "default-address-pools": [{"base": POOLS, "size": 24}],
        "bridge": run.name,
        "iptables": False,
        "ip-forward": False,
        "ip-masq": False,
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "cgroup-parent": f"/{run.name}",
        "log-level": "warn",
    }


def _free_data_folder() -> tuple[Path, IO[bytes]]:
    """The first data folder without a daemon, locked. The daemon inherits the lock.

    So the lock lasts as long as any of its processes.
    """
    cache_dir().mkdir(parents=True, exist_ok=True)
    for slot in range(1, SLOTS + 1):
        data = cache_dir() / ("docker" if slot == 1 else f"docker-{slot}")
        lock = (cache_dir() / f".{data.name}.lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        data.mkdir(exist_ok=True)
        return data, lock
    raise DaemonFailure(f"{SLOTS} engines of the lab run already; stop one of them")


def run_name() -> str:
    """A name of at most 15 characters, the limit of a bridge's name, that containerd accepts.

    containerd rejects a trailing underscore, which `mkdtemp` may produce, when the first container
    starts.
    """
    return f"urteil-{secrets.token_hex(4)}"


def _make_short_folder() -> str:
    """A short folder, since a socket's path has at most 108 bytes."""
    return "/run" if os.access("/run", os.W_OK) else "/tmp"


def _end_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        try:
            connection.connect(str(path))
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b" 200 " in connection.recv(64)
        except OSError:
            return False
