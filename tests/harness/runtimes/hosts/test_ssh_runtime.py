"""The runtime ssh over network namespaces with an sshd each: nodes, their end, two labs at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.runtimes.hosts.namespaces import Network, network_of_hosts
from tests.waiting import until
from urteil.chaos.observations import LabFailure, NodeState
from urteil.harness.dependencies.zookeeper import MAIN
from urteil.harness.runtimes.hosts.parts import java_part
from urteil.harness.runtimes.runtime import NodeSpec
from urteil.harness.runtimes.ssh import SshRuntime

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
SLEEP = ["sh", "-c", "echo up; echo written > data/file; sleep 600 & exec sleep 600"]
LAB = """
import sys, time
from pathlib import Path
from urteil.harness.runtimes.runtime import NodeSpec
from urteil.harness.runtimes.ssh import SshRuntime

runtime = SshRuntime(Path(sys.argv[1]), inventory=Path(sys.argv[2]), brokers=2, zookeepers=1)
for node in ("b1", "b2"):
    folder = Path(sys.argv[1]) / node
    (folder / "data").mkdir(parents=True)
    runtime.start(node, NodeSpec(argv=["sh", "-c", "sleep 600 & exec sleep 600"], cwd=folder))
runtime.pause("b2")
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network_of_hosts(tmp_path_factory.mktemp("hosts"), count=2) as network:
        yield network
        network.await_nothing_left()


def open_runtime(network: Network, run_dir: Path) -> SshRuntime:
    return SshRuntime(run_dir, inventory=network.inventory, brokers=2, zookeepers=1)


def start(runtime: SshRuntime, run_dir: Path, node: str) -> Path:
    folder = run_dir / "nodes" / node
    (folder / "data").mkdir(parents=True, exist_ok=True)
    runtime.start(node, NodeSpec(argv=SLEEP, cwd=folder))
    until(lambda: "up" in runtime.log(node))
    return folder


def test_nodes_run_on_their_hosts_and_their_files_come_back(
    network: Network, tmp_path: Path
) -> None:
    runtime = open_runtime(network, tmp_path)
    folder = start(runtime, tmp_path, "b2")
    assert [command for command in network.commands() if "sleep" in command]
    assert runtime.plan.address("b2") == network.hosts[1].address
    assert runtime.pause("b2").state is NodeState.PAUSED
    assert runtime.resume("b2").state is NodeState.RUNNING
    assert runtime.kill("b2").exit_code == -signal.SIGKILL
    assert runtime.unexpected_ends() == []
    start(runtime, tmp_path, "b2")
    assert runtime.status("b2").starts == 2
    assert runtime.throttle_cpu("b2", 0.5).cpus == 0.5
    runtime.close()
    assert (folder / "data" / "file").read_text() == "written\n"
    assert (tmp_path / "logs" / "b2.log").read_text() == "up\nup\n"
    network.await_nothing_left()


def test_disk_of_a_dead_broker_is_changed(network: Network, tmp_path: Path) -> None:
    runtime = open_runtime(network, tmp_path)
    folder = start(runtime, tmp_path, "b2")
    disks = runtime.disks(lambda node: [tmp_path / "nodes" / node / "data"])
    assert disks is not None
    reason = "files of b2 can be changed on its host only while it is dead"
    with pytest.raises(LabFailure, match=reason), disks.open_log_directories("b2"):
        pass
    with pytest.raises(LabFailure, match=r"b2 runs on the host h2 .*, not here"):
        disks.limit_file_size("b2", 1)
    runtime.kill("b2")
    with disks.open_log_directories("b2") as (data,):
        assert (data / "file").read_text() == "written\n"
        (data / "file").unlink()
        (data / "other").write_bytes(bytes(5_000_000))
    on_host = Path(runtime.home(folder))
    assert [path.name for path in (on_host / "data").iterdir()] == ["other"]
    runtime.close()
    assert (folder / "data" / "other").read_bytes() == bytes(5_000_000)
    assert (tmp_path / "logs" / "b2.log").read_text() == "up\n"


def test_nothing_is_left_after_sigkill_of_the_lab(network: Network, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", LAB, str(tmp_path), str(network.inventory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as lab:
        assert lab.stdout is not None
        assert lab.stdout.readline() == b"up\n"
        assert sum("sleep 600" in command for command in network.commands()) >= 4
        os.kill(lab.pid, signal.SIGKILL)
        lab.wait()
        network.await_nothing_left()


def test_two_labs_on_the_same_hosts_do_not_meet(network: Network, tmp_path: Path) -> None:
    one, two = (open_runtime(network, tmp_path / name) for name in ("one", "two"))
    ports = [runtime.plan.ports_at("b1").client for runtime in (one, two)]
    assert abs(ports[0] - ports[1]) > 200
    assert one.plan.address_from("b1", "b2") != two.plan.address_from("b1", "b2")
    start(one, tmp_path / "one", "b1")
    start(two, tmp_path / "two", "b1")
    one.close()
    assert two.status("b1").state is NodeState.RUNNING
    assert not (tmp_path / "two" / "nodes" / "b1" / "data" / "file").exists()
    two.close()
    assert (tmp_path / "two" / "nodes" / "b1" / "data" / "file").exists()


def test_lost_host_is_named_and_its_evidence_is_missed(network: Network, tmp_path: Path) -> None:
    runtime = open_runtime(network, tmp_path)
    for node in ("b1", "b2"):
        start(runtime, tmp_path, node)
    network.hosts[1].end_connections()
    sentence = until(lambda: failure_of(runtime, "b2"))
    assert "the host h2" in sentence
    assert "is lost" in sentence
    assert runtime.status("b1").state is NodeState.RUNNING
    with pytest.raises(LabFailure, match=r"evidence of b2 did not come back: the host h2 .*lost"):
        runtime.close()
    assert (tmp_path / "nodes" / "b1" / "data" / "file").exists()
    assert not (tmp_path / "nodes" / "b2" / "data").exists()
    assert (tmp_path / "logs" / "b2.log").read_text() == "up\n", "output came here during the run"
    network.await_nothing_left()


def failure_of(runtime: SshRuntime, node: str) -> str:
    try:
        runtime.status(node)
    except LabFailure as failure:
        return str(failure)
    return ""


def test_network_that_is_lost_for_ten_seconds_loses_nothing(
    network: Network, tmp_path: Path
) -> None:
    runtime = open_runtime(network, tmp_path)
    start(runtime, tmp_path, "b1")
    network.hosts[0].set_link(up=False)
    timer = threading.Timer(10.0, lambda: network.hosts[0].set_link(up=True))
    timer.start()
    assert runtime.status("b1").state is NodeState.RUNNING
    assert not timer.is_alive(), "the answer came when the network was back"
    runtime.close()


def test_java_of_a_host_loads_archived_classes(network: Network, tmp_path: Path) -> None:
    runtime = open_runtime(network, tmp_path)
    programs = runtime.programs
    options = [*programs.zookeeper_classes(), "-cp", programs.zookeeper_classpath()]
    folder = tmp_path / "nodes" / "zk1"
    folder.mkdir(parents=True)
    argv = [programs.java(), "-Xlog:class+load", *options, MAIN]
    runtime.start("zk1", NodeSpec(argv=argv, cwd=folder))
    until(lambda: runtime.status("zk1").state is NodeState.DEAD)
    loaded = [line for line in runtime.log("zk1").splitlines() if f"{MAIN} source" in line]
    assert loaded, runtime.log("zk1")
    assert loaded[0].endswith("source: shared objects file (top)")
    runtime.close()


def test_host_without_java_receives_the_labs(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "env", "cat", "ls", "mkdir", "mktemp", "mv", "rm", "find", "tar", "gzip",
                 "sha256sum", "python3"):  # fmt: skip
        (tools / name).symlink_to(f"/usr/bin/{name}")
    with network_of_hosts(tmp_path / "hosts", count=1, path=str(tools)) as network:
        runtime = SshRuntime(tmp_path, inventory=network.inventory, brokers=1, zookeepers=1)
        folder = tmp_path / "nodes" / "zk1"
        folder.mkdir(parents=True)
        runtime.start("zk1", NodeSpec(argv=[runtime.programs.java(), "-version"], cwd=folder))
        until(lambda: "Runtime Environment" in runtime.log("zk1"))
        assert (network.hosts[0].folder / "parts" / java_part().name).exists()
        runtime.close()
