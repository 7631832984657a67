"""Dynamic quorums: the voters stand in the metadata log, leave and join (KIP-853)."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.waiting import until
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.collection import collect
from urteil.harness.evidence.readers.metadata_log import FOLDER
from urteil.harness.scenario import DYNAMIC, ClusterSpec, RunFacts, save
from urteil.harness.targets import KraftTarget

pytestmark = pytest.mark.thorough


def act(cluster: Cluster, name: str, target: str):
    fault = FAULTS[name](FaultArguments(target=target, topic="orders"))
    assert fault.begin(cluster.controls()).acted
    return fault


@pytest.mark.parametrize("version", ["3.9.1", "4.1.2", "4.4.0"])
def test_voters_leave_and_join_a_quorum_whose_leader_dies(tmp_path: Path, version: str) -> None:
    spec = ClusterSpec(brokers=1, controllers=3, quorum=DYNAMIC)
    with Cluster(spec, KraftTarget(version=version), tmp_path) as cluster:
        controls = cluster.controls()
        first = dict(controls.quorum.voters())
        assert list(first) == ["q1", "q2", "q3"]

        removed = act(cluster, "remove_voter", "quorum_follower")
        (node,) = removed.targets
        assert node not in controls.voters
        assert len(controls.voters) == 2
        removed.heal(controls)
        assert controls.quorum.voters() == first
        assert not removed.find_residual_effects(controls)

        added = act(cluster, "add_voter", "quorum_follower")
        (node,) = added.targets
        now = dict(controls.quorum.voters())
        assert {one for one in first if now[one] != first[one]} == {node}
        added.heal(controls)

        leader = controls.controller()
        crash = act(cluster, "crash", "quorum_leader")
        until(lambda: controls.controller() not in (None, leader))
        crash.heal(controls)
        leader = controls.controller()
        removed = act(cluster, "remove_voter", "quorum_leader")
        until(lambda: controls.controller() not in (None, leader))
        removed.heal(controls)
        controls.await_healthy(deadline_s=60)
    facts = RunFacts(run="r1", seed=1, scenario="s", target="kafka", runtime="process",
                     boot_id="boot", command="", versions=cluster.versions())  # fmt: skip
    save(tmp_path / "run.json", facts)
    collected = collect(tmp_path)
    assert not collected.problems
    batches = pq.read_table(tmp_path / "evidence" / "metadata_logs").to_pylist()
    copies = [row for row in batches if row["broker"] >= 0]
    assert all(row["is_voter"] for row in copies)
    assert {row["changed_voters"] for row in copies} == {None, 0, 1}
    votes = pq.read_table(tmp_path / "evidence" / "votes").to_pylist()
    directories = {vote["directory"] for vote in votes if vote["broker"] == int(f"100{node[1]}")}
    assert len(directories - {None}) == 1 + (node in added.targets)
    assert not list((tmp_path / "nodes" / "b1").glob(f"data/{FOLDER}/*.checkpoint"))


def test_brokers_are_voters_of_a_dynamic_quorum(tmp_path: Path) -> None:
    with Cluster(ClusterSpec(quorum=DYNAMIC), KraftTarget(version="4.4.0"), tmp_path) as cluster:
        controls = cluster.controls()
        assert list(controls.quorum.voters()) == ["b1", "b2", "b3"]
        removed = act(cluster, "remove_voter", "b2")
        assert list(controls.voters) == ["b1", "b3"]
        assert controls.registered_brokers() == ["b1", "b2", "b3"]
        removed.heal(controls)
        assert list(controls.voters) == ["b1", "b2", "b3"]
