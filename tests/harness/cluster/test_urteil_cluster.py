"""Clusters of our own broker: side by side, standing, and ended with their lab."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure, NodeState, NotHealthy
from urteil.harness import stack_dumps, standing
from urteil.harness.cluster import Cluster
from urteil.harness.reaper import holders
from urteil.harness.scenario import ClusterSpec
from urteil.harness.stack_dumps import Stacks
from urteil.harness.standing import text
from urteil.harness.targets import UrteilTarget

LAB = """
import sys, time
from pathlib import Path
from urteil.harness.cluster import Cluster
from urteil.harness.reaper import start_reaper
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

with Cluster(ClusterSpec(brokers=2), UrteilTarget(), Path(sys.argv[1])) as cluster:
    print(start_reaper(), flush=True)
    time.sleep(600)
"""


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield
    for name in ("one", "default"):
        try:
            standing.stop_standing(name)
        except standing.StandingError:
            continue


def test_two_clusters_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        stack_dumps, "DUMP_DEADLINE_S", 60.0
    )  # a JVM on a busy machine takes longer
    monkeypatch.setattr(stack_dumps, "QUIET_S", 2.0)
    spec = ClusterSpec(brokers=1)
    with Cluster(spec, UrteilTarget(), tmp_path / "a") as cluster:
        with Cluster(spec, UrteilTarget(), tmp_path / "b") as other:
            assert cluster.plan.address("b1") != other.plan.address("b1")
            assert cluster.state.cluster_id() != other.state.cluster_id()
            assert cluster.controls().controller() == other.controls().controller() == "b1"
            check_stacks(cluster)


def check_stacks(cluster: Cluster) -> None:
    """A broker dumps its threads and tasks, a JVM its threads; both continue."""
    folder = Stacks(cluster.run_dir, [cluster.dump_sources]).take("a test asks")
    assert folder
    dumps = {path.stem: path.read_text() for path in folder.glob("*.txt")}
    assert set(dumps) == {"b1", "zk1", "lab"}
    assert "Full thread dump" in dumps["zk1"]
    assert "Current thread 0x" in dumps["b1"]
    assert re.search(r"^Task .*:\n  File .* in serve$", dumps["b1"], re.MULTILINE)
    cluster.controls().check()
    assert cluster.controls().controller() == "b1"


def test_unexpected_node_exit_fails_the_lab(tmp_path: Path) -> None:
    with Cluster(ClusterSpec(brokers=2), UrteilTarget(), tmp_path) as cluster:
        controls = cluster.controls()
        controls.check()
        psutil.Process(controls.status("b2").pid).kill()
        until(lambda: controls.status("b2").state is NodeState.DEAD)
        with pytest.raises(LabFailure, match="b2"):
            controls.check()


def test_failed_start_reports_the_broker_log(tmp_path: Path) -> None:
    spec = ClusterSpec(brokers=1, config={"listeners": "nonsense"})
    with pytest.raises(NotHealthy, match=r"b1 ended with \d+"):
        Cluster(spec, UrteilTarget(), tmp_path).__enter__()


def test_a_killed_lab_leaves_no_process(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", LAB, str(tmp_path)]
    lab = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert lab.stdout is not None
    with lab.stdout:
        token = lab.stdout.readline().strip()
    assert len(holders(token)) == 2 + 1 + 4  # brokers, ZooKeeper, a Toxiproxy a node and clients
    lab.kill()
    lab.wait(10)
    until(lambda: not holders(token), "a process outlived its lab")


@pytest.mark.usefixtures("own_state")
def test_standing_cluster_runs_until_it_is_stopped() -> None:
    with pytest.raises(standing.StandingError, match="no cluster one"):
        standing.attach("one")
    made = standing.start_usual(name="one", brokers=1)
    assert standing.attach("one") == made
    shown = text.as_text(made)
    assert made.bootstrap_servers in shown
    assert "urteil cluster down --name one" in shown
    assert f"metrics    http://{made.metrics[0]}/metrics" in shown
    assert standing.status_of_all() == [made]
    with pytest.raises(standing.StandingError, match="stands already"):
        standing.start_usual(name="one")
    assert all(psutil.pid_exists(pid) for pid in made.pids.values())
    standing.stop_standing("one")
    assert not any(psutil.pid_exists(pid) for pid in [made.keeper, *made.pids.values()])
    assert not Path(made.directory).exists()


@pytest.mark.usefixtures("own_state")
def test_cluster_ends_with_its_killed_process() -> None:
    made = standing.start_usual(name="one", brokers=1)
    psutil.Process(made.keeper).kill()
    until(lambda: not any(map(psutil.pid_exists, made.pids.values())), "a node outlived its keeper")
    with pytest.raises(standing.StandingError):
        standing.status("one")


def test_invalid_cluster_name_is_rejected() -> None:
    with pytest.raises(standing.StandingError, match="is not a name"):
        standing.start_usual(name="../elsewhere")
