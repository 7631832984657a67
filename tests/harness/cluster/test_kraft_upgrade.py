"""A cluster without ZooKeeper is upgraded from 3.9 to 4.x, and its metadata log has records of
both."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.collection import collect
from urteil.harness.evidence.journal import ADMIN_ACTS
from urteil.harness.evidence.readers.metadata_log import FOLDER, release_schemas
from urteil.harness.scenario import ClusterSpec, RunFacts, save
from urteil.harness.targets import KraftTarget

pytestmark = pytest.mark.thorough
OLDER = "3.9.1"


@pytest.mark.parametrize("version", ["4.0.0", "4.1.2", "4.4.0"])
def test_newer_release_defines_all_records_of_the_older_one(version: str) -> None:
    older, newer = release_schemas(OLDER).by_type, release_schemas(version).by_type
    for kind, schema in older.items():
        assert newer[kind].name == schema.name
        assert newer[kind].valid.first <= schema.valid.first
        assert (newer[kind].valid.last or 0) >= (schema.valid.last or 0)


@pytest.mark.parametrize(("version", "controllers"), [("4.1.2", 0), ("4.4.0", 3)])
def test_metadata_version_is_raised_after_all_nodes_have_the_newer_code(
    tmp_path: Path, version: str, controllers: int
) -> None:
    spec = ClusterSpec(brokers=3 if not controllers else 1, controllers=controllers, older=True)
    target = KraftTarget(version=version)
    with Cluster(spec, target, tmp_path) as cluster:
        controls = cluster.controls()
        controls.admin.create_topic("orders", partitions=2, replication_factor=spec.brokers)
        fault = FAULTS["upgrade"](FaultArguments(target="all", topic="orders"))
        before = controls.admin.features()
        assert before == {"metadata.version": 21}
        proof = fault.begin(controls)
        assert proof.acted
        assert controls.admin.features() == before
        fault.heal(controls)
        assert fault.final_proof(proof).acted
        assert controls.admin.features() == target.features()
        controls.admin.create_topic("later", partitions=1, replication_factor=1)
        controls.await_healthy(deadline_s=60)
        assert {"orders", "later"} <= {*controls.topics()}
    act = json.loads((tmp_path / ADMIN_ACTS).read_text().splitlines()[-2])
    assert (act["act"], act["outcome"]) == ("raise features", "ok")
    facts = RunFacts(run="r1", seed=1, scenario="s", target="kafka", runtime="process",
                     boot_id="boot", command="", versions=cluster.versions())  # fmt: skip
    save(tmp_path / "run.json", facts)
    collected = collect(tmp_path)
    assert not collected.problems
    states = pq.read_table(tmp_path / "evidence" / "states").to_pylist()
    features = [json.loads(row["settings"]) for row in states if row["path"] == "/feature"]
    assert (features[0], features[-1]) == (before, target.features())
    assert not list(tmp_path.glob(f"nodes/*/data/{FOLDER}/*.checkpoint"))
