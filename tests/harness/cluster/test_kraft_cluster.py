"""A cluster of Apache Kafka without ZooKeeper: faults on controllers, state, its metadata log."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from tests.harness.evidence.metadata_files import FIRST_SEGMENT
from tests.waiting import until
from urteil.chaos.observations import Link, NodeState, NotHealthy
from urteil.harness.clients.leadership_rotation import leadership_rounds
from urteil.harness.cluster import Cluster
from urteil.harness.dependencies.kafka import kafka_tool
from urteil.harness.evidence.readers.metadata_copies import MetadataCopy, find_committed
from urteil.harness.evidence.readers.metadata_log import (
    FOLDER,
    LEADER_CHANGE,
    MetadataLog,
    MetadataRecord,
    parse_records,
    read_metadata,
    release_schemas,
)
from urteil.harness.evidence.readers.stored_batches import read_batches
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KraftTarget, parse_target

TOPIC, PARTITIONS = "orders", 3
DUMPED = re.compile(r"\| offset: (\d+) .* payload: (\{.*\})")

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module", params=["3.6.2", "3.9.1", "4.4.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, version: str) -> Path:
    return tmp_path_factory.mktemp("kraft")


@pytest.fixture(scope="module")
def records(folder: Path, version: str) -> list[MetadataRecord]:
    """The committed records that a cluster leaves behind, whose state was read meanwhile."""
    with Cluster(ClusterSpec(), KraftTarget(version=version), folder) as cluster:
        play(cluster)
    schemas = release_schemas(version)
    folders = folder.glob(f"nodes/b*/data/{FOLDER}")
    copies = [MetadataCopy(copy, lambda: schemas) for copy in folders]
    assert len(copies) == 3
    for copy in copies:
        copy.read_new()
    best, committed = find_committed(copies)
    log = MetadataLog(best.folder)
    records = list(read_metadata(log, schemas))
    assert not log.damage
    return [record for record in records if record.offset < committed]


def play(cluster: Cluster) -> None:
    controls = cluster.controls()
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    small = cluster.topic_config({"segment.bytes": "16384"})
    for topic in (TOPIC, "gone"):
        settings = {"num_partitions": PARTITIONS, "replication_factor": 3, "configs": small}
        admin.create_topics({topic: settings})
    until(lambda: len(controls.partitions("gone")) == PARTITIONS)
    admin.delete_topics(["gone"])
    admin.close()
    until(lambda: list(controls.topics()) == [TOPIC])
    assert cluster.state.topic_id(TOPIC)
    former, epoch = controls.controller(), cluster.state.controller_epoch()
    assert former is not None
    controls.kill(former)
    until(lambda: controls.controller() not in (None, former))
    assert cluster.state.controller_epoch() > epoch
    until(lambda: former not in controls.registered_brokers())
    until(lambda: all(former not in view.isr for view in controls.partitions(TOPIC)))
    controls.start(former)
    controls.await_healthy(deadline_s=60)
    assert controls.status(former).state is NodeState.RUNNING


def test_node_that_rejects_its_settings_is_named_with_its_log(tmp_path: Path) -> None:
    spec = ClusterSpec(config={"log.retention.hours": "long"})
    cluster = Cluster(spec, KraftTarget(), tmp_path)
    try:
        with pytest.raises(NotHealthy, match=r"b1 ended with 1:(.|\n)*Invalid value long"):
            cluster.start(deadline_s=15)
    finally:
        cluster.close()


def test_round_awaits_a_broker_with_an_outdated_leader(tmp_path: Path) -> None:
    with Cluster(ClusterSpec(), KraftTarget(), tmp_path) as cluster:
        controls = cluster.controls()
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        admin.create_topics({TOPIC: {"num_partitions": PARTITIONS, "replication_factor": 3}})
        admin.close()
        until(lambda: len(controls.partitions(TOPIC)) == PARTITIONS)
        controls.await_healthy(deadline_s=60)
        former = next(node for node in controls.brokers if node != controls.controller())
        view = next(view for view in controls.partitions(TOPIC) if view.leader == former)
        until(lambda: (TOPIC, view.partition) in controls.named_leaders(former))
        links = controls.net.links_of(former, clients=False)
        controls.net.cut(links)
        until(lambda: leader_of(cluster, view.partition) not in (None, former))
        assert controls.named_leaders(former)[TOPIC, view.partition] == int(former[1:])

        problems: list[str] = []
        late = leadership_rounds(
            controls, cluster.bootstrap, [TOPIC], deadline_s=60, report=problems.append,
            agreement_s=0.5,
        )  # fmt: skip
        next(late)
        late.close()
        elected = leader_of(cluster, view.partition)
        assert problems == [
            f"before the final reads, {former} names {former} as leader of "
            f"{TOPIC}-{view.partition}, and the metadata plane {elected}"
        ]

        rounds = leadership_rounds(
            controls, cluster.bootstrap, [TOPIC], deadline_s=60, report=problems.append
        )
        with ThreadPoolExecutor() as pool:
            leaders = pool.submit(next, rounds)
            controls.net.heal(links)
            named = leaders.result()
        assert controls.named_leaders(former).items() >= named.items()
        assert len(problems) == 1
        rounds.close()


def leader_of(cluster: Cluster, partition: int) -> str | None:
    view = cluster.controls().partition(TOPIC, partition)
    return view.leader if view else None


def lower_first(value: Any) -> Any:
    """Names as Kafka's JSON has them."""
    if isinstance(value, list):
        return [lower_first(element) for element in value]
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: lower_first(element) for name, element in value.items()}
    return value


def upper_snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def read_snapshot(file: Path, version: str) -> Iterator[MetadataRecord]:
    for batch in read_batches(file):
        assert not isinstance(batch, str)
        yield from parse_records(batch, release_schemas(version), MetadataLog(file.parent))


def is_part(part: Any, container: Any) -> bool:
    """Whether every field of `part` stands in `whole`; Kafka's JSON leaves out defaults."""
    if isinstance(part, dict):
        return all(
            name in container and is_part(element, container[name])
            for name, element in part.items()
        )
    if isinstance(part, list):
        return len(part) == len(container) and all(map(is_part, part, container))
    return bool(part == container)


def dumped_records(folder: Path, version: str) -> Iterator[tuple[int, dict[str, Any]]]:
    files = [str(file) for file in folder.glob(f"nodes/b1/data/{FOLDER}/{FIRST_SEGMENT}")]
    argv = ["--cluster-metadata-decoder", "--files", *files]
    package = "kafka.tools" if version.startswith("3.") else "org.apache.kafka.tools"
    tool = kafka_tool(f"{package}.DumpLogSegments", argv, version)
    output = subprocess.run(tool, capture_output=True, text=True, check=True, timeout=120).stdout
    for line in output.splitlines():
        if match := DUMPED.match(line):
            yield int(match[1]), json.loads(match[2])


def test_records_are_those_of_kafkas_own_decoder(
    folder: Path, records: list[MetadataRecord], version: str
) -> None:
    ours = {record.offset: record for record in records}
    compared = 0
    for offset, dumped in dumped_records(folder, version):
        if offset not in ours:
            continue
        record = ours[offset]
        assert (upper_snake(record.name), record.version) == (dumped["type"], dumped["version"])
        assert is_part(dumped["data"], lower_first(record.fields)), (record, dumped)
        compared += 1
    names = {record.name for record in records}
    assert {"PartitionChangeRecord", "RemoveTopicRecord", LEADER_CHANGE} <= names
    defined = {schema.name for schema in release_schemas(version).by_type.values()}
    assert compared >= len([record for record in records if record.name in defined]) - 1


def test_release_has_the_features_of_its_own_format(
    records: list[MetadataRecord], folder: Path, version: str
) -> None:
    """Those of the format stand in the first snapshot from 4.4 on, in the log before."""
    snapshots = sorted(folder.glob(f"nodes/b1/data/{FOLDER}/*.checkpoint"))
    formatted = [record for file in snapshots for record in read_snapshot(file, version)]
    features = {
        record.fields["Name"] for record in [*formatted, *records]
        if record.name == "FeatureLevelRecord"
    }  # fmt: skip
    assert "metadata.version" in features
    later = {"group.version", "transaction.version", "eligible.leader.replicas.version"}
    assert later <= features or version.startswith("3.")


def test_each_link_between_nodes_has_a_proxy_for_the_quorum(folder: Path) -> None:
    cluster = Cluster(ClusterSpec(), parse_target("kafka-kraft"), folder / "planned")
    try:
        ports = cluster.plan.ports
        assert cluster.plan.zookeepers == ()
        assert cluster.plan.ports_of(Link("b1", "b2")) == (ports.internal, ports.controller)
    finally:
        cluster.close()


def test_users_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--target kafka"):
        Cluster(ClusterSpec(users=True), KraftTarget(), tmp_path)
