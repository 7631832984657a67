"""The lab's own engine: it starts, serves, and leaves nothing, whatever the end of its owner."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LONG_S, until
from urteil.chaos.waiting import retry
from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.runtimes.containers import own_engine as own
from urteil.harness.runtimes.containers.bridge import RANGE, NoFreeNetwork, free_network
from urteil.harness.runtimes.containers.daemon import run_name
from urteil.harness.runtimes.containers.docker_install import MARK, _no_services
from urteil.harness.runtimes.containers.engine import Engine, connect
from urteil.harness.runtimes.containers.images import ensure_images
from urteil.harness.runtimes.containers.own_engine import own_engine
from urteil.harness.runtimes.containers.pods import start_published

OWNER = """
from urteil.harness.runtimes.containers.images import ensure_images
from urteil.harness.runtimes.containers.own_engine import own_engine
with own_engine() as engine:
    image = ensure_images(engine, ["toxiproxy"])["toxiproxy"]
    network = engine.client.networks.create("net")
    engine.client.containers.run(image, detach=True, network="net", name="toxiproxy")
    print(engine.url, "br-" + network.id[:12], flush=True)
    input()
"""


def processes(run: Path) -> list[str]:
    """Of an engine: its daemons and shims, known by their arguments, and all in its group."""
    processes = []
    for entry in Path("/proc").iterdir():
        try:
            if (
                f"{run}/".encode() in (entry / "cmdline").read_bytes()
                or f"/{run.name}/" in (entry / "cgroup").read_text()
            ):
                processes.append(entry.name)
        except OSError:
            continue
    return processes


def left_of(run: Path) -> list[str]:
    """Processes, mounts, bridge, control group, firewall rules and folder of an engine."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    links = [name for _, name in socket.if_nameindex() if name == run.name]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{run.name}")]
    inside = [point for point in mounts if point.startswith(str(run))]
    rules = [rule for rule in firewall().splitlines() if run.name in rule]
    folder = [str(run)] if run.exists() else []
    return [*processes(run), *inside, *links, *groups, *rules, *folder]


def firewall() -> str:
    return subprocess.run(["iptables", "-w", "-S"], capture_output=True, text=True).stdout


def within(seconds: float, what: Callable[[], object]) -> None:
    """Wait until `what` is empty."""
    until(lambda: not what(), what, deadline_s=seconds)


def run_folder(url: str) -> Path:
    return Path(url.removeprefix("unix://")).parent


def bridges() -> set[str]:
    names = {name for _, name in socket.if_nameindex()}
    return {name for name in names if name.startswith(("docker", "urteil-"))}


def test_own_engine_ends_with_its_block_and_leaves_nothing() -> None:
    before, host = bridges(), os.environ.get("DOCKER_HOST")
    with own_engine() as engine:
        run = run_folder(engine.url)
        assert os.environ["DOCKER_HOST"] == engine.url
        network = engine.client.networks.create("net")
        network.reload()
        subnet = IPv4Network(network.attrs["IPAM"]["Config"][0]["Subnet"])
        assert subnet.subnet_of(RANGE)
        container = toxiproxy(engine, "net")
        assert proxies(f"{published(container, 8474)}/proxies") == b"{}"
        assert len(processes(run)) >= 4
        assert bridges() - before == {run.name}
    assert left_of(run) == []
    assert bridges() == before
    assert os.environ.get("DOCKER_HOST") == host


def proxies(url: str) -> bytes:
    def read() -> bytes:
        with urllib.request.urlopen(url, timeout=10) as answer:
            body: bytes = answer.read()
            return body

    return retry(read, OSError, deadline_s=LONG_S)


def test_containers_of_one_network_reach_each_other_and_no_others() -> None:
    """Also where the machine forwards, or its firewall drops what is forwarded."""
    with own_engine() as engine:
        near, far = (engine.client.networks.create(name).name for name in ("near", "far"))
        server = toxiproxy(engine, near)
        address = server.attrs["NetworkSettings"]["Networks"]["near"]["IPAddress"]
        assert reaches(engine, near, address, patience_s=LONG_S)
        assert not reaches(engine, far, address, patience_s=3)


def toxiproxy(engine: Engine, network: str) -> Any:
    """A started Toxiproxy that has answered; ports 8474 and 9000 are published."""
    image = ensure_images(engine, ["toxiproxy"])["toxiproxy"]
    ports = {f"{port}/tcp": ("127.0.0.1", None) for port in (8474, 9000)}
    container = engine.client.containers.create(image, network=network, ports=ports)
    start_published(container)
    container.reload()
    proxies(f"{published(container, 8474)}/proxies")
    return container


def published(container: Any, port: int) -> str:
    return f"http://127.0.0.1:{container.ports[f'{port}/tcp'][0]['HostPort']}"


def reaches(engine: Engine, network: str, address: str, *, patience_s: float) -> bool:
    """Whether a container in `network` reaches port 8474 of `address`: it proxies to there."""
    container = toxiproxy(engine, network)
    proxy = {"name": "x", "listen": "0.0.0.0:9000", "upstream": f"{address}:8474"}
    data = json.dumps(proxy).encode()
    urllib.request.urlopen(f"{published(container, 8474)}/proxies", data, timeout=LONG_S).close()
    url = f"{published(container, 9000)}/version"
    try:
        with urllib.request.urlopen(url, timeout=patience_s) as answer:
            return bool(answer.read())
    except OSError:
        return False


def test_engine_name_is_valid_for_containerd_and_bridges() -> None:
    """`urteil-zfmuimv_` was not: "namespace validation: identifier must match ..."."""
    namespace = re.compile(r"[A-Za-z0-9]+(?:[._-](?:[A-Za-z0-9]+))*")
    names = {run_name() for _ in range(500)}
    assert [name for name in names if not namespace.fullmatch(name) or len(name) > 15] == []


@pytest.mark.thorough
def test_two_at_once_have_a_data_folder_each() -> None:
    with own_engine() as first, own_engine() as second:
        roots = [engine.client.info()["DockerRootDir"] for engine in (first, second)]
        assert roots[0] != roots[1]
        assert first.client.ping() and second.client.ping()  # noqa: PT018


@pytest.fixture
def owner() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def read_started(owner: subprocess.Popen[str]) -> tuple[Path, str]:
    """The engine's folder, and the bridge of its network."""
    assert owner.stdout is not None
    url, bridge = owner.stdout.readline().split()
    return run_folder(url), bridge


def end(owner: subprocess.Popen[str]) -> None:
    owner.kill()
    owner.communicate(timeout=60)


def test_reaper_removes_everything_of_a_killed_owner(
    owner: subprocess.Popen[str],
) -> None:
    run, bridge = read_started(owner)
    assert len(processes(run)) >= 4
    end(owner)
    within(LONG_S, lambda: left_of(run))
    assert not Path(f"/sys/class/net/{bridge}").exists()


@pytest.mark.thorough
def test_next_engine_removes_remains_of_a_killed_one(owner: subprocess.Popen[str]) -> None:
    run, bridge = read_started(owner)
    (keeper,) = [
        int(pid) for pid in Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split()
    ]
    os.kill(keeper, signal.SIGKILL)
    within(20, lambda: processes(run))  # the daemon got its parent-death signal
    end(owner)
    with own_engine():
        assert left_of(run) == []
        assert not Path(f"/sys/class/net/{bridge}").exists()


def test_failed_engine_start_reports_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, broken = bridges(), tmp_path / "dockerd"
    broken.write_text("#!/bin/sh\necho no such storage driver\nexit 7\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with (
        pytest.raises(MissingDependency, match=r"ended with 7:\nno such storage driver"),
        own_engine(),
    ):
        pass
    assert bridges() == before


def test_engine_without_root_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with (
        pytest.raises(MissingDependency, match=r"apt-get install docker\.io.*needs root"),
        own_engine(),
    ):
        pass


def test_engine_without_cgroups_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "_mounts", lambda: ["1 1 0:1 / / rw - ext4 /dev/x rw"])
    with (
        pytest.raises(MissingDependency, match=r"no cgroups are mounted.*--privileged"),
        own_engine(),
    ):
        pass


def test_a_running_engine_is_used_as_it_is(engine: Engine) -> None:
    with own.running_engine() as running:
        assert running.url == engine.url


def test_an_engine_that_was_named_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(MissingDependency, match="there is no socket"), own.running_engine():
        pass


@pytest.mark.thorough
def test_a_standing_engine(tmp_path: Path) -> None:
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    urteil = f"{sys.executable} -m urteil"

    def shell(script: str) -> str:
        done = subprocess.run(script, shell=True, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    url = shell(f'eval "$({urteil} engine start)"; echo $DOCKER_HOST').strip()
    run = run_folder(url)
    try:
        assert connect(url).version
        assert shell(f"{urteil} engine start") == f"export DOCKER_HOST={url}\n"
        assert url in shell(f"DOCKER_HOST={url} {urteil} engine status")
    finally:
        shell(f"{urteil} engine stop")
    assert left_of(run) == []


def test_a_policy_of_the_machine_is_not_overwritten(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("theirs")
    with _no_services(policy):
        assert policy.read_text() == "theirs"
    assert policy.read_text() == "theirs"


def test_our_policy_is_removed_by_its_install_or_the_next(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    for left_by_a_killed_install in (False, True):
        if left_by_a_killed_install:
            policy.write_text(f"{MARK}\n")
        with _no_services(policy):
            assert MARK in policy.read_text()
        assert not policy.exists()


def test_a_bridge_takes_a_network_without_a_route() -> None:
    networks = list(RANGE.subnets(new_prefix=24))
    assert free_network([]) == networks[-1]
    assert free_network([networks[-1]]) == networks[-2]
    assert free_network([networks[-1].supernet(new_prefix=16)]) == networks[255]
    with pytest.raises(NoFreeNetwork):
        free_network([RANGE])
