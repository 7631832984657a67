"""The lab's own container engine, for machines where none runs.

It is Debian's docker.io with a data folder of its own, so that images outlive the engine.

The engine process (`engine_process.py`) starts the daemon and owns it. On SIGTERM it stops the
daemon and removes its containers and networks. The engine of a session also ends with the session:
the engine process reads from a pipe whose other end only the session holds.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from urteil.harness.child_process import await_exit
from urteil.harness.dependencies.installation import MissingDependency, can_apt
from urteil.harness.reaper import VARIABLE
from urteil.harness.runtimes.containers.docker_install import PACKAGE, install_docker
from urteil.harness.runtimes.containers.engine import Engine, connect

START_S = 180.0
STOP_S = 40.0
HOW = (
    f"install Docker, on Debian `apt-get install {PACKAGE}`, start it, and let your user reach it; "
    "an engine of the lab's own needs root on Linux"
)


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """The report of the engine process: the address of the engine, or the error."""

    url: str = ""
    data: str = ""
    log: str = ""
    problem: str = ""


@contextmanager
def own_engine(report: Callable[[str], None] = lambda line: None) -> Iterator[Engine]:
    """An engine for the time of the block, named by DOCKER_HOST.

    Its containers, networks and processes end with it, also when this process is killed. Images
    stay in the user's cache folder for the next one. Two engines at once have a data folder each.
    Raises MissingDependency when docker.io is missing and cannot be installed, or the daemon does
    not start.
    """
    process, started = start_engine_process(report)
    before = os.environ.get("DOCKER_HOST")
    try:
        engine = connect(started.url)
        os.environ["DOCKER_HOST"] = started.url
        try:
            yield engine
        finally:
            engine.client.close()
    finally:
        os.environ.pop("DOCKER_HOST", None)
        if before is not None:
            os.environ["DOCKER_HOST"] = before
        _stop(process)


@contextmanager
def running_engine(report: Callable[[str], None] = lambda line: None) -> Iterator[Engine]:
    """The engine that runs, unchanged. Without one, an engine of the lab's own for the time of the
    block."""
    try:
        engine = connect()
    except MissingDependency as error:
        if os.environ.get("DOCKER_HOST"):
            raise  # the user named an engine, so no other one replaces it
        report(str(error))
        with own_engine(report) as engine:
            yield engine
        return
    try:
        yield engine
    finally:
        engine.client.close()


def start_engine_process(
    report: Callable[[str], None], *, stays: bool = False
) -> tuple[subprocess.Popen[bytes], Started]:
    """Start an engine process and wait until its engine answers.

    With `stays` it outlives this process until SIGTERM.
    """
    if shutil.which("dockerd") is None:
        if not can_apt():
            raise MissingDependency("docker", f"no engine runs here: {HOW}")
        report(f"installing {PACKAGE}; its permanent daemon is not started")
        install_docker(how=HOW)
    check_machine()
    report("starting an engine of the lab's own")
    argv = [sys.executable, "-P", "-m", "urteil.harness.runtimes.containers.engine_process"]
    process = subprocess.Popen(
        [*argv, "stay"] if stays else argv,
        stdin=subprocess.DEVNULL if stays else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if stays else None,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name != VARIABLE},
    )
    assert process.stdout is not None
    started = _read_report(process.stdout)
    if started.problem:
        _stop(process)
        raise MissingDependency("docker", f"the lab's own engine did not start: {started.problem}")
    return process, started


def _read_report(pipe: IO[bytes]) -> Started:
    if not select.select([pipe], [], [], START_S)[0]:
        return Started(problem=f"its process reported nothing for {START_S:g} s")
    line = pipe.readline()
    return msgspec.json.decode(line, type=Started) if line else Started(problem="it died")


def check_machine() -> None:
    """Raises MissingDependency where a daemon cannot run: without root or cgroups."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise MissingDependency("docker", f"no engine runs here: {HOW}")
    kinds = {line.split(" - ")[1].split()[0] for line in _mounts()}
    if not kinds & {"cgroup", "cgroup2"}:
        raise MissingDependency(
            "docker",
            "no cgroups are mounted here, so no engine can run: mount them (`apt-get install "
            "cgroupfs-mount; cgroupfs-mount`), or, in a container, start it with --privileged",
        )


def _mounts() -> list[str]:
    return Path("/proc/self/mountinfo").read_text().splitlines()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    await_exit(process, deadline_s=STOP_S)  # if it is killed, the daemon gets a parent-death signal
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
