"""The life of a standing cluster, from `up` to `down`.

`up` starts the cluster process (`cluster_process.py`) detached from this process. It owns the
cluster and its reaper, and writes a state file with their addresses. When it dies in any way, the
cluster ends with it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil

from urteil.chaos.waiting import until
from urteil.harness.fault_server import FaultSession
from urteil.harness.reaper import VARIABLE
from urteil.harness.scenario import save
from urteil.harness.standing.settings import settings_problem
from urteil.harness.standing.state_file import StandingCluster, StandingRequest

UP_DEADLINE_S = 180.0
SEND_DEADLINE_S = 600.0
"""In addition, for hosts that lack parts."""
DOWN_DEADLINE_S = 40.0
POLL_S = 0.05
LOG, LOG_LINES = "keeper.log", 30
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")


class StandingError(Exception):
    """There is no such cluster, the name is taken, or the cluster did not start."""


class BadRequest(StandingError):
    """Impossible options. The message has the remedy."""


def start_usual(
    *,
    name: str = "default",
    brokers: int = 3,
    zookeepers: int = 1,
    target: str = "urteil",
    runtime: str = "process",
    directory: Path | None = None,
) -> StandingCluster:
    """Start a cluster of the usual kind: see `start`."""
    request = StandingRequest(
        name=name, brokers=brokers, zookeepers=zookeepers, target=target, runtime=runtime
    )
    return start(request, directory)


def start(request: StandingRequest, directory: Path | None = None) -> StandingCluster:
    """Start a cluster and return when it is ready. Raises StandingError with the reason otherwise.

    Raises BadRequest for impossible options, before anything starts.
    """
    _check(request)
    name = request.name
    folder = _folder(name)
    where = directory or folder / "files"
    if directory is None:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # the state file has the key for faults
    save(folder / "request.json", request)
    module = "urteil.harness.standing.cluster_process"
    argv = [sys.executable, "-P", "-m", module, str(folder / "request.json"), str(where)]
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=env,
        )
    return _await_up(name, process, UP_DEADLINE_S + (SEND_DEADLINE_S if request.hosts else 0.0))


def _check(request: StandingRequest) -> None:
    name = request.name
    if not NAME.fullmatch(name):
        raise BadRequest(f"{name!r} is not a name: letters, digits, dot, dash, underscore")
    if _find(name) is not None:
        raise StandingError(f"a cluster {name} stands already: urteil cluster status --name {name}")
    for problem in (request.problem(), settings_problem(request)):
        if problem:
            raise BadRequest(problem)
    if problem := request.port_problem():
        raise StandingError(problem)


def status(name: str = "default") -> StandingCluster:
    """The standing cluster `name`. Raises StandingError without one."""
    cluster = _find(name)
    if cluster is None:
        raise StandingError(f"no cluster {name} stands; urteil cluster up starts one")
    return cluster


def status_of_all() -> list[StandingCluster]:
    """All standing clusters, by name."""
    names = sorted(path.name for path in _folder("any").parent.glob("*"))
    return [cluster for name in names if (cluster := _find(name)) is not None]


def attach(name: str = "default") -> StandingCluster:
    """Like `status`, for tests that use a standing cluster: see `bootstrap_servers`."""
    return status(name)


def faults_on(name: str = "default") -> FaultSession:
    """A fault session on a standing cluster. Its faults are healed at its end."""
    cluster = status(name)
    return FaultSession(cluster.fault_port, cluster.fault_key)


def stop_standing(name: str = "default") -> None:
    """Stop a standing cluster and remove its data. Raises StandingError without one."""
    process = psutil.Process(status(name).keeper)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(DOWN_DEADLINE_S)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait(DOWN_DEADLINE_S)
    shutil.rmtree(_folder(name), ignore_errors=True)


def write_state(cluster: StandingCluster) -> None:
    """Publish the state of a ready cluster. For the cluster process."""
    save(_folder(cluster.name) / "state.json", cluster)


def _await_up(name: str, process: subprocess.Popen[bytes], deadline_s: float) -> StandingCluster:
    """The state of the cluster when it is ready. StandingError with the end of its log if its
    process ends before, or at the deadline."""
    cluster = until(
        lambda: _find(name),
        lambda cluster: cluster is not None or process.poll() is not None,
        deadline_s=deadline_s,
        poll_s=POLL_S,
    )
    if cluster is None:
        process.terminate()
        log = (_folder(name) / LOG).read_text(errors="replace")
        last_lines = "\n".join(log.strip().splitlines()[-LOG_LINES:])
        raise StandingError(f"the cluster {name} did not start:\n{last_lines}")
    return cluster


def _find(name: str) -> StandingCluster | None:
    """The state of a cluster whose process lives."""
    file = _folder(name) / "state.json"
    try:
        cluster = msgspec.json.decode(file.read_bytes(), type=StandingCluster)
        process = psutil.Process(cluster.keeper)
        is_same = abs(process.create_time() - cluster.keeper_began) < 1
        is_running = is_same and process.status() != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, psutil.NoSuchProcess, msgspec.DecodeError):
        return None
    return cluster if is_running else None


def clients_folder(name: str) -> Path:
    """The folder of the client configurations of a cluster."""
    return _folder(name) / "clients"


def _folder(name: str) -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "urteil" / "clusters" / name
