"""External clusters: the file, and runs against one."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure, Link, NodeState
from urteil.cli.main import exit_code
from urteil.harness.cluster import Cluster, ExternalCluster
from urteil.harness.cluster.external import COMMAND_DEADLINE_S, NodeCommands
from urteil.harness.reaper import holders, start_reaper
from urteil.harness.run.runner import run_scenario
from urteil.harness.scenario import (
    ClusterSpec,
    FaultSpec,
    Scenario,
    WorkloadSpec,
    load_facts,
    load_scenario,
)
from urteil.harness.targets import KraftTarget, UrteilTarget
from urteil.harness.targets.external import fit_scenario, load_external
from urteil.harness.verify.result import Status, Verdict

KRAFT = 'bootstrap = ["127.0.0.1:1"]\n'
SMALL = KRAFT + 'zookeeper = "127.0.0.1:2"\n'
NODE = '[nodes.b1]\ndirect = "a:1"\n'
LINK = '[[links]]\nfrom = "client"\nto = "b1"\nproxies = {}\nprobe = "a:9"\ntoxiproxy = "a:{}"\n'
SCENARIO = Scenario(
    name="external",
    workload=WorkloadSpec(rate_records_per_s=60),
    faults=(
        FaultSpec(fault="partition", target="follower->leader", at_s=1, duration_s=3),
        FaultSpec(fault="crash", target="leader", at_s=5, duration_s=5),
    ),
    duration_s=12,
    guarantees=("lost_write",),
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bootstrap = 3", "bootstrap"),
        ('zookeeper = "a:1"', "bootstrap"),
        ('bootstrap = []\nzookeeper = "a:1"', "names no broker"),
        (SMALL + 'brokers = ["b1"]', "brokers"),
        (SMALL + '[nodes.one]\ndirect = "a:1"', "nodes.one: a broker is named b"),
        (SMALL + '[nodes.b1]\ndirect = "here"', "'here' is not host:port"),
        (SMALL + '[nodes.b1]\ndirect = "a:1"\nhalt = "x"', "halt"),
        (
            SMALL + '[[links]]\nfrom = "b1"\nto = "b2"\ntoxiproxy = "a:1"\nproxies = []\n'
            'probe = "a:2"',
            "a link leads from b1 to b2: nodes are client",
        ),
        ("bootstrap = [", "Invalid|invalid"),
        (SMALL.replace(":1", ":70000"), "'127.0.0.1:70000' is not host:port"),
        (SMALL + NODE + 'kill = "x"', "nodes.b1 has kill, which needs state too"),
        (SMALL + NODE + 'state = "x"\nstop = "x"', "nodes.b1 has stop, which needs start too"),
        (SMALL + NODE + 'state = "x"\npause = "x"', "nodes.b1 has pause, which needs resume too"),
        (SMALL + NODE + 'copy = "x {into}"', "nodes.b1 has copy, which needs stop too"),
        (SMALL + NODE + 'state = "it\'s"', "nodes.b1.state is not a command: No closing quotation"),
        (
            SMALL + NODE.replace("b1", "q1"),
            "nodes.q1 belongs to the other kind of cluster",
        ),
        (
            KRAFT + NODE.replace("b1", "zk1"),
            "nodes.zk1 belongs to the other kind of cluster: the file names no zookeeper",
        ),
        (SMALL + NODE.replace("b1", "zk1") + 'copy = "cp x"', "zk1.copy names no {into}"),
        (
            SMALL + NODE + 'copy = "x {into}"\n' + NODE.replace("b1", "b2"),
            "nodes.b2 has no copy: judged are the logs of all brokers or of none",
        ),
        (SMALL + NODE + LINK.format("[]", 1), "the link from client to b1 names no proxies"),
        (SMALL + NODE + LINK.format('["p"]', 1) * 2, "from client to b1 is there twice"),
        (
            SMALL
            + NODE
            + NODE.replace("b1", "b2")
            + LINK.format('["p"]', 1)
            + LINK.format('["q"]', 2).replace("b1", "b2"),
            "links from client name several toxiproxies",
        ),
    ],
)
def test_invalid_external_file_is_rejected_with_reason(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message) as raised:
        load_external(file)
    assert str(file) in str(raised.value)


def test_missing_external_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        load_external(tmp_path / "nothing.toml")


class Keeper:
    """Keeps a cluster as somebody else would: by pid files and commands of a shell."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.file = cluster.run_dir / "cluster.toml"
        for node in self._nodes():
            pid = cluster.runtime.status(node).pid
            self._pid_file(node).write_text(f"{pid}\n")
        self.file.write_text(self._toml())

    def close(self) -> None:
        for node in self.cluster.plan.brokers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(self._pid_file(node).read_text()), signal.SIGKILL)

    def _nodes(self) -> list[str]:
        return [*self.cluster.plan.brokers, *self.cluster.plan.zookeepers]

    def _pid_file(self, node: str) -> Path:
        return self.cluster.node_dir(node) / "pid"

    def _toml(self) -> str:
        plan = self.cluster.plan
        text = f"bootstrap = {json.dumps(plan.bootstrap())}\n"
        text += f'zookeeper = "{plan.zookeeper_direct()}"\n' if plan.zookeepers else ""
        text += "".join(self._node(node) for node in self._nodes())
        for link in plan.links():
            proxies = json.dumps([proxy.name for proxy in plan.proxies(link)])
            text += f'[[links]]\nfrom = "{link.src}"\nto = "{link.dst}"\nproxies = {proxies}\n'
            text += 'toxiproxy = "{}:{}"\n'.format(*plan.toxiproxy(link.src))
            text += 'probe = "{}:{}"\n'.format(*plan.link_address(link))
        return text

    def _node(self, node: str) -> str:
        folder, pid = self.cluster.node_dir(node), f"$(cat {self._pid_file(node)})"
        lives = f"grep -qs '^State:.[RSDT]' /proc/{pid}/status"
        frozen = f"grep -qs '^State:.T' /proc/{pid}/status"
        start = shlex.join(self.cluster._argv(node))
        commands = {
            "direct": "{}:{}".format(*self.cluster.plan.direct_address(node)),
            "state": f"if {frozen}; then echo paused {pid}; elif {lives}; then echo running {pid}; "
            "else echo gone; fi",
            "pause": f"kill -STOP {pid}; until {frozen}; do sleep 0.1; done",
            "resume": f"kill -CONT {pid}; while {frozen}; do sleep 0.1; done",
            "start": f"cd {folder}; setsid {start} >>log 2>&1 & echo $! >{self._pid_file(node)}",
            "stop": f"kill {pid}; while {lives}; do sleep 0.1; done",
            "kill": f"kill -9 {pid}; while {lives}; do sleep 0.1; done",
            "copy": f"cp -r {folder}/data {{into}}/data",
            "log": f"cat {folder}/log || true; printf 'told \\377' >&2",
        }
        text = f"[nodes.{node}]\n"
        for name, command in commands.items():
            script = command if name == "direct" else shlex.join(["sh", "-c", command])
            text += f"{name} = {json.dumps(script)}\n"
        return text


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    with Cluster(ClusterSpec(), UrteilTarget(), tmp_path_factory.mktemp("theirs")) as cluster:
        keeper = Keeper(cluster)
        yield keeper
        keeper.close()


def test_external_cluster_is_judged_under_faults(keeper: Keeper, tmp_path: Path) -> None:
    scenario = msgspec.structs.replace(
        SCENARIO, target=f"external:{keeper.file}", runtime="external"
    )
    run_dir, result = run_scenario(scenario, out=tmp_path, engine="duckdb")
    assert result.verdict is Verdict.PASS, result.reasons
    assert [fault.acted for fault in result.faults] == [True, True]
    status = {guarantee.name: guarantee.status for guarantee in result.guarantees}
    assert status["replica_divergence"] is Status.HOLDS
    assert status["two_leaders"] is Status.HOLDS
    assert "told \N{REPLACEMENT CHARACTER}" in (run_dir / "logs" / "b1.log").read_text()
    own = load_facts(run_dir).topics[0].config
    assert own["min.insync.replicas"] == "2"  # whatever their brokers have
    topic = load_scenario(run_dir).workload.topics[0].name
    assert topic.startswith("urteil-")
    state = keeper.cluster.state
    assert set(state.registered_brokers()) == {"b1", "b2", "b3"}
    assert state.partitions(topic)


@pytest.mark.thorough
def test_external_cluster_of_kraft_is_judged_under_faults(tmp_path: Path) -> None:
    """The lab asks brokers for its state, and reads the metadata log from their copied disks."""
    with Cluster(ClusterSpec(), KraftTarget(), tmp_path / "theirs") as cluster:
        keeper = Keeper(cluster)
        try:
            scenario = msgspec.structs.replace(
                SCENARIO, target=f"external:{keeper.file}", runtime="external"
            )
            _, result = run_scenario(scenario, out=tmp_path, engine="duckdb")
        finally:
            keeper.close()
    assert result.verdict is Verdict.PASS, result.reasons
    assert [fault.acted for fault in result.faults] == [True, True]
    status = {guarantee.name: guarantee.status for guarantee in result.guarantees}
    assert status["replica_divergence"] is Status.HOLDS
    assert status["two_leaders"] is Status.HOLDS
    assert status["quorum_log"] is Status.NOT_JUDGED


def test_faults_of_an_interrupted_run_are_undone(keeper: Keeper, tmp_path: Path) -> None:
    cluster = ExternalCluster(keeper.file, tmp_path)
    cluster.start()
    controls, link = cluster.controls(), Link("b3", "b2")
    controls.net.cut([link])
    controls.pause("b3")
    assert controls.kill("b1").state is NodeState.DEAD
    cluster.close()
    cluster.close()
    assert controls.net.probe(link).answered
    states = {node: controls.status(node).state for node in controls.brokers}
    assert set(states.values()) == {NodeState.RUNNING}
    pid = controls.status("b1").pid
    assert pid not in holders(start_reaper())  # the lab's end is not theirs
    assert os.getpgid(pid or 0) != os.getpgrp()  # nor is Ctrl-C


LAB = """
import sys
from pathlib import Path
from urteil.chaos.observations import Link
from urteil.harness.cluster import ExternalCluster

cluster = ExternalCluster(Path(sys.argv[1]), Path(sys.argv[2]))
cluster.start()
controls = cluster.controls()
controls.hold("several", expiry_s=600)
controls.net.cut([Link("b3", "b2")])
controls.pause("b3")
controls.kill("b1")
print("under faults", flush=True)
sys.stdin.read()
"""


def test_killed_lab_leaves_no_fault(keeper: Keeper, tmp_path: Path) -> None:
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB, keeper.file, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert lab.stdout is not None
    assert lab.stdout.readline() == "under faults\n"
    link, theirs = Link("b3", "b2"), ExternalCluster(keeper.file, tmp_path)
    assert not keeper.cluster.links.probe(link, timeout_s=0.5).answered
    lab.kill()
    lab.wait()
    until(lambda: (tmp_path / "guard.log").read_text().endswith("healed\n"))
    nodes = ("b1", "b2", "b3")
    until(lambda: set(keeper.cluster.state.registered_brokers()) == set(nodes))
    assert {theirs.commands.status(node).state for node in nodes} == {NodeState.RUNNING}
    assert keeper.cluster.links.probe(link).answered
    assert "the lab is gone" in (tmp_path / "guard.log").read_text()


def test_a_fault_that_is_held_too_long_is_healed(keeper: Keeper, tmp_path: Path) -> None:
    cluster = ExternalCluster(keeper.file, tmp_path)
    cluster.start()
    controls, link = cluster.controls(), Link("b3", "b2")
    controls.net.cut([link])
    controls.hold("partition", expiry_s=1)  # not over before it acts
    until(lambda: keeper.cluster.links.probe(link).answered)
    assert "held too long: partition" in (tmp_path / "guard.log").read_text()
    with pytest.raises(LabFailure, match="held too long"):
        cluster.close()


def test_urteil_heal_heals_remaining_faults(keeper: Keeper, tmp_path: Path) -> None:
    left = ExternalCluster(keeper.file, tmp_path)
    left.controls().net.cut([Link("b3", "b2")])
    left.commands.pause("b3")
    assert exit_code(["heal", "--target", f"external:{keeper.file}"]) == 0
    assert left.commands.status("b3").state is NodeState.RUNNING
    assert keeper.cluster.links.probe(Link("b3", "b2")).answered
    left.state.close()


def test_brokers_run_again_when_one_cannot_be_stopped(keeper: Keeper, tmp_path: Path) -> None:
    lame = tmp_path / "lame.toml"
    text = keeper.file.read_text()
    stop = next(line for line in text.splitlines() if line.startswith("stop"))
    lame.write_text(text.replace(stop, 'stop = "false"', 1))
    cluster = ExternalCluster(lame, tmp_path)
    cluster.start()
    with pytest.raises(LabFailure, match="stop of b1 failed"):
        cluster.stop()
    cluster.close()
    assert set(keeper.cluster.state.registered_brokers()) == {"b1", "b2", "b3"}


@pytest.mark.parametrize("kill", ["sh -c 'rm alive'", ""], ids=["with kill", "without"])
def test_node_that_does_not_stop_in_time_is_killed(kill: str, tmp_path: Path) -> None:
    """As on the lab's own clusters. A combined node of KRaft, for one, waits for a majority of the
    quorum, of which the others have ended before it."""
    (tmp_path / "alive").touch()
    state = "sh -c 'test -e alive && echo running 7 || echo gone 7 137'"
    file = tmp_path / "cluster.toml"
    file.write_text(
        'bootstrap = ["b1:9092"]\n[nodes.b1]\ndirect = "b1:9092"\n'
        f'state = "{state}"\nstart = "true"\nstop = "sleep 600"\nkill = "{kill}"\n'
    )
    commands = NodeCommands(file, load_external(file))
    if not kill:
        with pytest.raises(LabFailure, match=r"stop of b1 failed: .* timed out"):
            commands.stop("b1", deadline_s=0.5 - COMMAND_DEADLINE_S)
        return
    status = commands.stop("b1", deadline_s=0.5 - COMMAND_DEADLINE_S)
    assert (status.state, status.exit_code) == (NodeState.DEAD, -9)


def test_unknown_node_is_reported(keeper: Keeper, tmp_path: Path) -> None:
    cluster = ExternalCluster(keeper.file, tmp_path)
    with pytest.raises(LabFailure, match="the file names no node b7"):
        cluster.controls().kill("b7")
    cluster.close()


def test_a_scenario_with_settings_of_its_own_is_refused(keeper: Keeper, tmp_path: Path) -> None:
    spec = ClusterSpec(config={"unclean.leader.election.enable": "true"})
    scenario = msgspec.structs.replace(
        SCENARIO, cluster=spec, target=f"external:{keeper.file}", runtime="external"
    )
    with pytest.raises(ValueError, match="which only a cluster of the lab takes"):
        run_scenario(scenario, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_cluster_is_judged_by_its_own_timeouts(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(SMALL)
    assert fit_scenario(SCENARIO, load_external(file)).cluster.config == {
        "zookeeper.session.timeout.ms": "18000",
        "replica.lag.time.max.ms": "30000",
    }
    file.write_text(SMALL + '[settings]\n"replica.lag.time.max.ms" = "5000"\n')
    config = fit_scenario(SCENARIO, load_external(file)).cluster.config
    assert config["replica.lag.time.max.ms"] == "5000"


def test_a_cluster_of_kraft_is_judged_by_its_brokers_sessions(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(KRAFT)
    assert fit_scenario(SCENARIO, load_external(file)).cluster.config == {
        "zookeeper.session.timeout.ms": "9000",
        "replica.lag.time.max.ms": "30000",
    }
    file.write_text(KRAFT + '[settings]\n"broker.session.timeout.ms" = "3000"\n')
    config = fit_scenario(SCENARIO, load_external(file)).cluster.config
    assert config["zookeeper.session.timeout.ms"] == "3000"


@pytest.mark.parametrize("fault", ["session_expired", "crash"])
def test_fault_of_zookeeper_is_refused_without_one(fault: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(KRAFT)
    target = "leader" if fault == "session_expired" else "zookeeper"
    faults = (FaultSpec(fault=fault, target=target, at_s=1, duration_s=1),)
    scenario = msgspec.structs.replace(SCENARIO, faults=faults)
    with pytest.raises(ValueError, match=f"the fault {fault} "):
        fit_scenario(scenario, load_external(file))


@pytest.mark.thorough
def test_missing_evidence_is_not_judged(keeper: Keeper, tmp_path: Path) -> None:
    bare = tmp_path / "bare.toml"
    file = load_external(keeper.file)
    bare.write_text(f'bootstrap = {json.dumps(file.bootstrap)}\nzookeeper = "{file.zookeeper}"\n')
    scenario = msgspec.structs.replace(
        SCENARIO, faults=(), duration_s=3, target=f"external:{bare}", runtime="external"
    )
    _, result = run_scenario(scenario, out=tmp_path, engine="duckdb")
    assert result.verdict is Verdict.PASS, result.reasons
    status = {guarantee.name: guarantee.status for guarantee in result.guarantees}
    assert status["lost_write"] is Status.HOLDS
    assert status["replica_divergence"] is Status.NOT_JUDGED


@pytest.mark.thorough
def test_fault_without_its_command_does_not_act(keeper: Keeper, tmp_path: Path) -> None:
    lame = tmp_path / "lame.toml"
    lines = [line for line in keeper.file.read_text().splitlines() if not line.startswith("kill")]
    lame.write_text("\n".join(lines))
    scenario = msgspec.structs.replace(
        SCENARIO, faults=SCENARIO.faults[1:], target=f"external:{lame}", runtime="external"
    )
    _, result = run_scenario(scenario, out=tmp_path, engine="duckdb")
    assert result.verdict is Verdict.UNKNOWN
    assert "the file names no command kill" in " ".join(result.reasons)
