"""Clocks of brokers and controllers: set while they run, observed, correct after healing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.tools import compile_java, java_folder
from tests.waiting import until
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.observations import LabFailure
from urteil.harness.cluster import Cluster
from urteil.harness.cluster.clocks import Clocks
from urteil.harness.dependencies.faketime import faketime_library
from urteil.harness.dependencies.java import java
from urteil.harness.evidence.journal import CLOCKS_SET
from urteil.harness.runtimes import false_clocks
from urteil.harness.runtimes.false_clocks import FILE, FILE_VARIABLE, FalseClocks, replace_file
from urteil.harness.scenario import ClusterSpec
from urteil.harness.stack_dumps import DumpSource
from urteil.harness.targets import KraftTarget, UrteilTarget

KINDS = ("faketime_shm", "sem.faketime_sem")


def test_clocks_jump_drift_and_are_corrected(tmp_path: Path) -> None:
    spec = ClusterSpec(brokers=1, own_clocks=True)
    with Cluster(spec, UrteilTarget(), tmp_path) as cluster:
        controls = cluster.controls()
        for name, option in (("clock_shift", {"offset_s": -300.0}), ("clock_drift", {"rate": 3.0})):
            fault = FAULTS[name](FaultArguments(target="b1", options=option))
            proof = fault.begin(controls)
            assert proof.acted, proof.text
            fault.heal(controls)
            assert fault.find_residual_effects(controls) == ""


JAVA_WAITS = """
public class Waits {
    public static void main(String[] given) throws Exception {
        Object here = new Object();
        long begin = System.nanoTime();
        for (int i = 0; i < 10; i++) synchronized (here) { here.wait(20); }
        System.out.println((System.nanoTime() - begin) / 1000000);
    }
}
"""


JAVA_SLEEPER = """
public class Sleeper {
    public static void main(String[] given) throws Exception {
        System.out.println("sleeping");
        Thread.sleep(60000);
    }
}
"""


def test_stack_dump_of_a_controller_shows_its_clock(tmp_path: Path) -> None:
    (tmp_path / "Sleeper.java").write_text(JAVA_SLEEPER)
    false = FalseClocks(
        lambda: str(faketime_library()),
        (),
        lambda _node, name, text: replace_file(tmp_path / name, text),
    )
    env = false.env(tmp_path, tmp_path)
    compile_java(tmp_path / "Sleeper.java", java_folder("java", "3.9.1"), tmp_path)
    output = tmp_path / "output"
    with output.open("wb") as file:
        command = [java(), "-cp", str(tmp_path), "Sleeper"]
        process = subprocess.Popen(command, env=os.environ | env, stdout=file)
    try:
        until(lambda: "sleeping" in output.read_text())
        source = DumpSource(name="q1", pid=process.pid, output=output.read_text)
        clocks = Clocks(false, lambda: [], ["b1"], lambda _node: source, tmp_path / CLOCKS_SET)
        assert abs(clocks.clock_offset_s("q1")) < 1
        clocks.set_offset("q1", offset_s=-300)
        until(lambda: abs(clocks.clock_offset_s("q1") + 300) < 1)
    finally:
        process.kill()
        process.wait()


def test_evidence_has_the_settings_of_a_clock_and_the_starts_of_its_node(tmp_path: Path) -> None:
    false = FalseClocks(lambda: "", (), lambda *_file: None)
    file = tmp_path / CLOCKS_SET
    clocks = Clocks(false, lambda: [], ["b1"], lambda _node: None, file)
    clocks.note_start("q1")
    clocks.set_offset("q1", offset_s=-5.0)
    clocks.note_start("q1")
    clocks.note_start("b1")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["node"], row["ahead_s"]) for row in rows] == [("q1", 0), ("q1", -5), ("q1", 0)]
    assert [row["at_ns"] for row in rows] == sorted(row["at_ns"] for row in rows)


@pytest.mark.thorough
def test_clock_of_a_controller_jumps_and_is_corrected(tmp_path: Path) -> None:
    spec = ClusterSpec(brokers=1, controllers=1, own_clocks=True)
    with Cluster(spec, KraftTarget(version="4.4.0"), tmp_path) as cluster:
        controls = cluster.controls()
        fault = FAULTS["clock_shift"](FaultArguments(target="q1", options={"offset_s": 300.0}))
        proof = fault.begin(controls)
        assert proof.acted, proof.text
        fault.heal(controls)
        assert fault.find_residual_effects(controls) == ""


@pytest.mark.parametrize("set_to", ["+0", "+300.000s", "-300.000s"])
def test_jvm_with_a_false_clock_sleeps_the_requested_time(tmp_path: Path, set_to: str) -> None:
    """Its waits ended at once: Apache Kafka's brokers span, and lost their sessions."""
    (tmp_path / "Waits.java").write_text(JAVA_WAITS)
    clocks = FalseClocks(lambda: str(faketime_library()), (), lambda *_file: None)
    env = clocks.env(tmp_path, tmp_path)
    (tmp_path / FILE).write_text(f"{set_to}\n")
    compile_java(tmp_path / "Waits.java", java_folder("java", "3.9.1"), tmp_path)
    command = [java(), "-cp", str(tmp_path), "Waits"]
    printed = subprocess.run(
        command, env=os.environ | env, capture_output=True, text=True, check=True
    )
    assert int(printed.stdout) >= 200


def test_shared_memory_of_killed_processes_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(false_clocks, "SHARED", tmp_path)
    with subprocess.Popen(["true"]) as ended:
        pass
    names = [f"{kind}_{pid}" for pid in (ended.pid, os.getpid()) for kind in KINDS]
    for name in names:
        (tmp_path / name).touch()
    false_clocks.remove_dead_clocks({})
    assert len(list(tmp_path.iterdir())) == len(names)
    false_clocks.remove_dead_clocks({FILE_VARIABLE: "a file"})
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names[2:])


def test_clock_fault_without_own_clocks_is_rejected(tmp_path: Path) -> None:
    cluster = Cluster(ClusterSpec(brokers=1), UrteilTarget(), tmp_path)
    with pytest.raises(LabFailure, match="own_clocks"):
        _ = cluster.controls().clocks
    cluster.close()
