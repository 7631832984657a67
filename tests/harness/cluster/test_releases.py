"""The releases of a cluster's nodes before and after the steps of a rolling upgrade."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.cluster import Cluster
from urteil.harness.cluster.releases import NEWER_CODE, NEWER_PROTOCOL
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, KraftTarget, Target, parse_target


def planned(spec: ClusterSpec, target: Target, folder: Path) -> Cluster:
    """A cluster that does not run."""
    cluster = Cluster(spec, target, folder)
    cluster.close()
    for node in cluster.plan.voters or cluster.nodes:
        cluster.node_dir(node).mkdir(parents=True, exist_ok=True)
    return cluster


def test_brokers_with_zookeeper_use_the_older_protocol_until_the_second_step(
    tmp_path: Path,
) -> None:
    releases = planned(ClusterSpec(older=True), KafkaTarget(), tmp_path).releases
    assert releases.release("b1") == "kafka 3.8.0, protocol 3.8"
    assert releases.upgrade("b1", NEWER_CODE) == "kafka 3.9.1, protocol 3.8"
    assert releases.upgrade("b1", NEWER_PROTOCOL) == "kafka 3.9.1"
    assert releases.release("b2") == "kafka 3.8.0, protocol 3.8"


def test_controllers_of_their_own_are_upgraded_too(tmp_path: Path) -> None:
    spec = ClusterSpec(older=True, controllers=3)
    cluster = planned(spec, KraftTarget(version="4.4.0"), tmp_path)
    removed = "controlled.shutdown.max.retries"
    assert cluster.releases.release("q1") == "kafka-kraft 3.9.1"
    assert removed in cluster.properties(cluster.nodes["b1"])
    assert cluster.releases.upgrade("q1", NEWER_CODE) == "kafka-kraft 4.4.0"
    assert removed not in (cluster.node_dir("q1") / "server.properties").read_text()
    assert cluster.releases.release("b1") == "kafka-kraft 3.9.1"


def test_versions_name_the_newest_release_of_an_upgrade_last(tmp_path: Path) -> None:
    cluster = planned(ClusterSpec(older=True), KraftTarget(version="4.1.2"), tmp_path)
    assert cluster.versions()["kafka-kraft"] == "3.9.1, 4.1.2"
    mixed = "mix:kafka,kafka:0.11.0.3,kafka:2.8.2"
    cluster = Cluster(ClusterSpec(), parse_target(mixed), tmp_path / "mix")
    cluster.close()
    assert cluster.versions()["kafka"] == "0.11.0.3, 2.8.2, 3.9.1"
