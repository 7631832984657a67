"""The guard beside an external cluster heals after the lab's death and after a fault's expiry."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure
from urteil.harness.cluster import guard_process
from urteil.harness.cluster.external import ExternalCluster, NodeCommands
from urteil.harness.cluster.guard import Guard
from urteil.harness.targets.external import load_external

LAB = """
import os, signal, sys
from pathlib import Path
from urteil.harness.cluster import guard_process
from urteil.harness.cluster.external import NodeCommands, ExternalCluster
from urteil.harness.cluster.guard import Guard
from urteil.harness.targets.external import load_external

file = Path(sys.argv[1])
guard = Guard(file, file.parent)
guard.start()
nodes = NodeCommands(file, load_external(file), guard.announce)
nodes.pause("b1")
nodes.kill("b2")
guard.hold("several", expiry_s=float(sys.argv[2]))  # not over before both were hurt
print("under faults", flush=True)
if sys.argv[3] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
guard.close()
"""


class Nodes:
    """Three nodes that are files with their states, kept by commands of a shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "cluster.toml"
        text = 'bootstrap = ["127.0.0.1:1"]\nzookeeper = "127.0.0.1:2"\n'
        for node in ("b1", "b2", "b3"):
            (folder / node).write_text("running")
            text += f'[nodes.{node}]\ndirect = "127.0.0.1:3"\nstate = "cat {node}"\n'
            for act, state in (
                ("start", "running"), ("stop", "dead"), ("kill", "dead"),
                ("pause", "paused"), ("resume", "running"),
            ):  # fmt: skip
                command = shlex.join(["sh", "-c", f"printf {state} > {node}"])
                text += f"{act} = {json.dumps(command)}\n"
        self.file.write_text(text)

    def states(self) -> list[str]:
        return [(self.folder / node).read_text() for node in ("b1", "b2", "b3")]

    def lab(self, expiry_s: float, end: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", LAB, str(self.file), str(expiry_s), end]
        lab = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert lab.stdout is not None
        assert lab.stdout.readline() == "under faults\n"
        return lab

    def log(self) -> str:
        return (self.folder / "guard.log").read_text()


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


def test_guard_heals_when_the_lab_is_killed(nodes: Nodes) -> None:
    assert nodes.lab(600, "die").wait() == -9
    until(lambda: nodes.states() == ["running"] * 3)
    until(lambda: "healed" in nodes.log())
    assert "healing: the lab is gone" in nodes.log()
    assert "b1 was paused and is resumed" in nodes.log()
    assert "b2 was dead and is started" in nodes.log()


def test_guard_heals_when_the_lab_hangs(nodes: Nodes) -> None:
    lab = nodes.lab(0.5, "hang")
    until(lambda: nodes.states() == ["running"] * 3)
    assert "held too long: several" in nodes.log()
    lab.communicate("")


def test_guard_does_nothing_after_a_goodbye(nodes: Nodes) -> None:
    """Then what is left is not the guard's to mend."""
    lab = nodes.lab(600, "go")
    assert nodes.states() == ["paused", "dead", "running"]
    lab.communicate("")
    assert nodes.states() == ["paused", "dead", "running"]
    assert nodes.log() == ""


def test_dead_guard_prevents_faults_but_not_healing(nodes: Nodes) -> None:
    guard = Guard(nodes.file, nodes.folder)
    guard.start()
    commands = NodeCommands(nodes.file, load_external(nodes.file), guard.announce)
    commands.kill("b2")
    assert guard._process is not None
    guard._process.kill()
    guard._process.wait()
    with pytest.raises(LabFailure, match="the guard beside the cluster died"):
        commands.kill("b1")
    commands.start("b2")
    assert nodes.states() == ["running"] * 3


def test_other_nodes_start_when_one_fails_to_start(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_process, "HEAL_DEADLINE_S", 0.1)
    text = nodes.file.read_text().replace("printf running > b1", "exit 3")
    nodes.file.write_text(text)
    for node, state in (("b1", "dead"), ("b2", "dead"), ("b3", "paused")):
        (nodes.folder / node).write_text(state)
    with pytest.raises(LabFailure, match="b1: start of b1 failed"):
        guard_process.GuardProcess(nodes.file, lambda _line: None).heal_all()
    assert nodes.states() == ["dead", "running", "running"]


def test_run_reports_faults_that_the_guard_ended(nodes: Nodes) -> None:
    """What it says of them later is not true then."""
    cluster = ExternalCluster(nodes.file, nodes.folder)
    cluster.guard.start()
    cluster.guard.hold("pause", expiry_s=0.1)
    until(lambda: "healed" in nodes.log())
    with pytest.raises(LabFailure, match="a fault was held too long"):
        cluster.close()
