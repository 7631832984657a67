"""A cluster that stands until it is taken down, held by a keeper process of its own.

`up` starts the keeper (`harness/standing_keeper.py`) detached from this process; the keeper holds
the cluster and its reaper, and a state file says where it is. When the keeper dies in any way, the
cluster ends with it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil

from urteil.harness.fault_keeper import FaultSession
from urteil.harness.reaper import VARIABLE
from urteil.harness.scenario import save

UP_DEADLINE_S = 180.0
DOWN_DEADLINE_S = 40.0
POLL_S = 0.05
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")


class StandingError(Exception):
    """No such cluster, one of that name stands already, or it did not come up."""


class StandingCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down about a standing cluster. `keeper_began` guards against reused pids."""

    name: str
    target: str
    runtime: str = "process"
    brokers: int
    zookeepers: int
    directory: str
    keeper: int
    keeper_began: float
    bootstrap: list[str] = []
    metrics: list[str] = []
    zookeeper: str = ""
    pids: dict[str, int] = {}
    fault_port: int = 0
    fault_key: str = ""

    @property
    def bootstrap_servers(self) -> str:
        """As clients take it: `host:port,host:port`."""
        return ",".join(self.bootstrap)

    def __str__(self) -> str:
        option = "" if self.name == "default" else f" --name {self.name}"
        lines = [
            f"cluster    {self.name}: {self.brokers} brokers, target {self.target}, "
            f"runtime {self.runtime}",
            f"bootstrap  {self.bootstrap_servers}",
            f"zookeeper  {self.zookeeper}",
            *(f"metrics    http://{address}/metrics" for address in self.metrics),
            f"files      {self.directory}",
            *(f"{node:<10} {_life(pid)}" for node, pid in self.pids.items()),
            f"stop it    urteil cluster down{option}",
        ]
        return "\n".join(lines)


def up(
    *,
    name: str = "default",
    brokers: int = 3,
    zookeepers: int = 1,
    target: str = "urteil",
    runtime: str = "process",
    directory: Path | None = None,
) -> StandingCluster:
    """Start a cluster and return when it is ready; StandingError with the reason otherwise."""
    if not NAME.fullmatch(name):
        raise StandingError(f"{name!r} is no name: letters, digits, dot, dash, underscore")
    if _find(name) is not None:
        raise StandingError(f"a cluster {name} stands already: urteil cluster status --name {name}")
    where = directory or _folder(name) / "files"
    if directory is None:
        shutil.rmtree(_folder(name), ignore_errors=True)
    _folder(name).mkdir(parents=True, exist_ok=True)
    _folder(name).chmod(0o700)  # whoever reads its state file may play faults on it
    argv = [
        sys.executable,
        "-P",
        "-m",
        "urteil.harness.standing_keeper",
        name,
        str(where),
        str(brokers),
        str(zookeepers),
        target,
        runtime,
    ]
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    with (_folder(name) / "keeper.log").open("wb") as log:
        keeper = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=env,
        )
    return _await_up(name, keeper)


def status(name: str = "default") -> StandingCluster:
    """The standing cluster `name`; StandingError when there is none."""
    found = _find(name)
    if found is None:
        raise StandingError(f"no cluster {name} stands; urteil cluster up starts one")
    return found


def attach(name: str = "default") -> StandingCluster:
    """The same, for tests that use a standing cluster: see `bootstrap_servers`."""
    return status(name)


def faults_on(name: str = "default") -> FaultSession:
    """A session of faults on a standing cluster; what it began is healed when it ends."""
    found = status(name)
    return FaultSession(found.fault_port, found.fault_key)


def down(name: str = "default") -> None:
    """Stop a standing cluster and remove its data; StandingError when there is none."""
    found = status(name)
    keeper = psutil.Process(found.keeper)
    keeper.send_signal(signal.SIGTERM)
    try:
        keeper.wait(DOWN_DEADLINE_S)
    except psutil.TimeoutExpired:
        keeper.kill()
        keeper.wait(DOWN_DEADLINE_S)
    shutil.rmtree(_folder(name), ignore_errors=True)


def write_state(cluster: StandingCluster) -> None:
    """For the keeper: the cluster is ready."""
    save(_folder(cluster.name) / "state.json", cluster)


def _await_up(name: str, keeper: subprocess.Popen[bytes]) -> StandingCluster:
    deadline = time.monotonic() + UP_DEADLINE_S
    while (found := _find(name)) is None:
        ended = keeper.poll() is not None
        if ended or time.monotonic() > deadline:
            if not ended:
                keeper.terminate()
            log = (_folder(name) / "keeper.log").read_text(errors="replace")
            why = "\n".join(log.strip().splitlines()[-30:])
            raise StandingError(f"the cluster {name} did not come up:\n{why}")
        time.sleep(POLL_S)
    return found


def _find(name: str) -> StandingCluster | None:
    """The state of a cluster whose keeper lives."""
    file = _folder(name) / "state.json"
    try:
        found = msgspec.json.decode(file.read_bytes(), type=StandingCluster)
        keeper = psutil.Process(found.keeper)
        same = abs(keeper.create_time() - found.keeper_began) < 1
        lives = same and keeper.status() != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, psutil.NoSuchProcess, msgspec.DecodeError):
        return None
    return found if lives else None


def _folder(name: str) -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "urteil" / "clusters" / name


def _life(pid: int) -> str:
    return f"pid {pid}, lives" if psutil.pid_exists(pid) else f"pid {pid}, dead"
