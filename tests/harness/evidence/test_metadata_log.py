"""KRaft's metadata log yields every version of every fact, as ZooKeeper's log does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.harness.evidence.metadata_files import FIRST_SEGMENT, SegmentWriter
from urteil.chaos.faults.base.fault import KRAFT
from urteil.chaos.topology import EAST, WEST
from urteil.harness.dependencies.kafka import VERSION, kafka_jar
from urteil.harness.evidence.collection import collect
from urteil.harness.evidence.readers.metadata_log import (
    FOLDER,
    MetadataLog,
    RecordSchemas,
    read_metadata,
)
from urteil.harness.evidence.readers.metadata_states import MetadataStates
from urteil.harness.evidence.readers.wall_clocks import ClockSetting, WallClocks
from urteil.harness.scenario import RunFacts, TopicFact, save

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
TOPIC = ("TopicRecord", {"Name": "orders", "TopicId": TOPIC_ID})
STATE = "/brokers/topics/orders/partitions/0/state"
SETTINGS = "/config/topics/orders"


@pytest.fixture(scope="module")
def schemas() -> RecordSchemas:
    return RecordSchemas(kafka_jar("kafka-metadata"), kafka_jar("kafka-clients"))


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    folder = tmp_path / FOLDER
    folder.mkdir()
    return MetadataLog(folder)


def partition(number: int = 0, **fields: Any) -> tuple[str, dict[str, Any]]:
    start = {"Replicas": [1, 2, 3], "Isr": [1, 2, 3], "Leader": 1}
    start |= {"LeaderEpoch": 0, "PartitionEpoch": 0}
    return "PartitionRecord", {"PartitionId": number, "TopicId": TOPIC_ID} | start | fields


def change(number: int = 0, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "PartitionChangeRecord", {"PartitionId": number, "TopicId": TOPIC_ID} | fields


def store(log: MetadataLog, writer: SegmentWriter, base: int = 0) -> None:
    (log.folder / f"{base:020}.log").write_bytes(writer.data)


def states(log: MetadataLog, schemas: RecordSchemas) -> list[dict[str, Any]]:
    return list(MetadataStates(WallClocks(0)).rows(read_metadata(log, schemas)))


def facts(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.get(column) for column in columns) for row in rows]


def test_partition_changes_are_versions_of_its_state(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.lead(controller=2, epoch=7, wall_ms=1000)
    writer.write(TOPIC, partition(), wall_ms=2000)
    writer.write(change(Isr=[1, 2]))
    writer.write(change(Leader=2, Isr=[2]))
    writer.write(change(Leader=-1))
    store(log, writer)
    rows = [row for row in states(log, schemas) if row["path"] == STATE]
    columns = ("version", "leader", "leader_epoch", "isr", "controller_epoch", "topic_id")
    assert facts(rows, *columns) == [
        (0, 1, 0, "[1, 2, 3]", 7, TOPIC_ID),
        (1, 1, 0, "[1, 2]", 7, TOPIC_ID),
        (2, 2, 1, "[2]", 7, TOPIC_ID),
        (3, -1, 2, "[2]", 7, TOPIC_ID),
    ]
    assert (rows[0]["zxid"], rows[0]["at_ns"], rows[0]["wall_ms"]) == (2, 2_000_000_000, 2000)
    assert not log.damage
    assert (log.records, log.start, log.end) == (6, 0, 6)


def test_eligible_leader_replicas_stand_until_a_record_changes_them(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(TOPIC, partition())
    writer.write(change(Isr=[1], EligibleLeaderReplicas=[2]), version=2)
    writer.write(change(Leader=-1, Isr=[], EligibleLeaderReplicas=[1, 2]), version=2)
    writer.write(change(Leader=2, Isr=[2], EligibleLeaderReplicas=[1]), version=2)
    writer.write(change(Isr=[1, 2], EligibleLeaderReplicas=[]), version=2)
    store(log, writer)
    rows = [row for row in states(log, schemas) if row["path"] == STATE]
    assert facts(rows, "isr", "elr") == [
        ("[1, 2, 3]", "[]"), ("[1]", "[2]"), ("[]", "[1, 2]"), ("[2]", "[1]"), ("[1, 2]", "[]"),
    ]  # fmt: skip


def test_topic_has_all_partitions_of_its_batch_before_their_states(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(TOPIC, partition(0), partition(1))
    writer.write(change(0, Replicas=[2, 3, 4]))
    store(log, writer)
    rows = states(log, schemas)
    topic = "/brokers/topics/orders"
    assert [row["path"].removeprefix(topic) for row in rows] == [
        "", "/partitions/0/state", "/partitions/1/state", "", "/partitions/0/state",
    ]  # fmt: skip
    assert [row["version"] for row in rows if row["path"] == topic] == [0, 1]
    assert json.loads(rows[0]["replicas"]) == {"0": [1, 2, 3], "1": [1, 2, 3]}
    assert json.loads(rows[3]["replicas"]) == {"0": [2, 3, 4], "1": [1, 2, 3]}


def test_removed_topic_ends_each_partition(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(TOPIC, partition(0), partition(1))
    writer.write(("RemoveTopicRecord", {"TopicId": TOPIC_ID}))
    store(log, writer)
    gone = [row["path"] for row in states(log, schemas) if row["version"] == -1]
    assert gone == [STATE, STATE.replace("/0/", "/1/"), "/brokers/topics/orders", SETTINGS]


def setting(name: str, value: str | None) -> tuple[str, dict[str, Any]]:
    fields = {"ResourceType": 2, "ResourceName": "orders", "Name": name, "Value": value}
    return "ConfigRecord", fields


def test_settings_of_topics_and_quotas_are_states(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(TOPIC, partition(), setting("retention.ms", "1"))
    writer.write(setting("segment.ms", "2"))
    writer.write(setting("retention.ms", None))
    for client in ("p1", None):
        entity = [{"EntityType": "client-id", "EntityName": client}]
        quota = {"Entity": entity, "Key": "producer_byte_rate", "Value": 5.0, "Remove": False}
        writer.write(("ClientQuotaRecord", quota))
    writer.write(("RemoveTopicRecord", {"TopicId": TOPIC_ID}))
    writer.write(("TopicRecord", {"Name": "orders", "TopicId": "AAAAAAAAAAAAAAAAAAAAAg"}))
    writer.write(setting("segment.ms", "3"))
    store(log, writer)
    rows = [row for row in states(log, schemas) if row["path"].startswith("/config/")]
    assert facts(rows, "path", "settings") == [
        (SETTINGS, '{"retention.ms": "1"}'),
        (SETTINGS, '{"retention.ms": "1", "segment.ms": "2"}'),
        (SETTINGS, '{"segment.ms": "2"}'),
        ("/config/clients/p1", '{"producer_byte_rate": "5.0"}'),
        ("/config/clients/<default>", '{"producer_byte_rate": "5.0"}'),
        (SETTINGS, None),
        (SETTINGS, '{"segment.ms": "3"}'),
    ]


def test_levels_of_features_are_states(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    for name, level in (("metadata.version", 21), ("group.version", 1), ("metadata.version", 25)):
        writer.write(("FeatureLevelRecord", {"Name": name, "FeatureLevel": level}))
    writer.write(("FeatureLevelRecord", {"Name": "group.version", "FeatureLevel": 0}))
    store(log, writer)
    assert facts(states(log, schemas), "path", "settings") == [
        ("/feature", '{"metadata.version": 21}'),
        ("/feature", '{"metadata.version": 21, "group.version": 1}'),
        ("/feature", '{"metadata.version": 25, "group.version": 1}'),
        ("/feature", '{"metadata.version": 25}'),
    ]


def test_broker_is_present_while_it_is_unfenced(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(("RegisterBrokerRecord", {"BrokerId": 1, "Fenced": True}))
    writer.write(("BrokerRegistrationChangeRecord", {"BrokerId": 1, "Fenced": -1}))
    writer.write(("BrokerRegistrationChangeRecord", {"BrokerId": 1, "InControlledShutdown": 1}),
                 version=1)  # fmt: skip
    writer.write(("BrokerRegistrationChangeRecord", {"BrokerId": 1, "Fenced": 1}))
    writer.write(("RegisterBrokerRecord", {"BrokerId": 1, "Fenced": False}))
    writer.write(("UnregisterBrokerRecord", {"BrokerId": 1}))
    store(log, writer)
    assert facts(states(log, schemas), "zxid", "path", "version") == [
        (1, "/brokers/ids/1", 0),
        (3, "/brokers/ids/1", -1),
        (4, "/brokers/ids/1", 0),
        (5, "/brokers/ids/1", -1),
    ]


def test_departure_of_a_broker_precedes_the_elections_of_its_batch(log, schemas) -> None:
    """The controller writes the fencing behind the elections that it causes."""
    writer = SegmentWriter(schemas)
    writer.write(("RegisterBrokerRecord", {"BrokerId": 1, "Fenced": False}), TOPIC, partition())
    writer.write(
        change(Leader=2, Isr=[2, 3]),
        ("BrokerRegistrationChangeRecord", {"BrokerId": 1, "Fenced": 1}),
    )
    store(log, writer)
    rows = [row for row in states(log, schemas) if row["path"] in (STATE, "/brokers/ids/1")]
    assert facts(rows, "zxid", "path", "version") == [
        (0, "/brokers/ids/1", 0),
        (2, STATE, 0),
        (3, "/brokers/ids/1", -1),
        (3, STATE, 1),
    ]


def test_changes_have_the_time_of_the_lab_though_the_clock_of_their_controller_was_set(
    log, schemas
) -> None:
    writer = SegmentWriter(schemas)
    writer.lead(controller=1002, epoch=1, wall_ms=4_000)
    writer.write(TOPIC, partition(), wall_ms=305_000)
    writer.lead(controller=1003, epoch=2, wall_ms=6_000)
    writer.write(change(Leader=3), wall_ms=7_000)
    store(log, writer)
    second_ns = 1_000_000_000
    settings = [ClockSetting(0, 0), ClockSetting(4 * second_ns, 300 * second_ns)]
    folded = MetadataStates(WallClocks(0, {1002: settings}))
    rows = list(folded.rows(read_metadata(log, schemas)))
    assert sorted({row["at_ns"] // second_ns for row in rows}) == [4, 5, 6, 7]


def test_leader_of_the_quorum_is_the_controller_of_its_epoch(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.lead(controller=2, epoch=1)
    writer.lead(controller=3, epoch=4)
    store(log, writer)
    rows = states(log, schemas)
    assert facts(rows, "path", "controller", "controller_epoch") == [
        ("/controller", 2, None),
        ("/controller_epoch", None, 1),
        ("/controller", 3, None),
        ("/controller_epoch", None, 4),
    ]


def test_log_without_its_begin_continues_from_its_snapshot(log, schemas) -> None:
    snapshot, writer = SegmentWriter(schemas), SegmentWriter(schemas, base=50)
    snapshot.write(TOPIC, partition(LeaderEpoch=4, PartitionEpoch=9))
    (log.folder / f"{50:020}-{3:010}.checkpoint").write_bytes(snapshot.data)
    writer.write(change(Leader=3))
    store(log, writer, base=50)
    rows = [row for row in states(log, schemas) if row["path"] == STATE]
    assert facts(rows, "zxid", "version", "leader_epoch") == [(49, 9, 4), (50, 10, 5)]
    assert (log.start, log.end, log.damage) == (50, 51, [])


def test_log_without_its_begin_and_snapshot_is_damaged(log, schemas) -> None:
    writer = SegmentWriter(schemas, base=50)
    writer.write(("NoOpRecord", {}))
    store(log, writer, base=50)
    assert not states(log, schemas)
    assert log.damage == ["the log begins at offset 50 without a snapshot"]


def test_change_of_a_partition_that_nothing_created_is_damage(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(change(Leader=3), ("RegisterBrokerRecord", {"BrokerId": 1, "Fenced": False}))
    store(log, writer)
    folded = MetadataStates(WallClocks(0))
    assert [row["path"] for row in folded.rows(read_metadata(log, schemas))] == ["/brokers/ids/1"]
    (damage,) = folded.damage
    assert damage.startswith("the PartitionChangeRecord at offset 0")


def test_cut_tail_ends_the_log_with_file_and_position(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(TOPIC, partition())
    length = len(writer.data)
    writer.write(change(Leader=3))
    writer.data = writer.data[:-1]
    store(log, writer)
    rows = states(log, schemas)
    assert [row["version"] for row in rows] == [0, 0]
    (damage,) = log.damage
    assert damage.startswith(f"{0:020}.log: the batch at {length} is cut")


def test_rotten_batch_ends_its_segment(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(TOPIC, partition())
    writer.data = writer.data[:-1] + b"\xff"
    store(log, writer)
    assert not states(log, schemas)
    assert log.damage == [f"{0:020}.log: the batch at offset 0 has a wrong CRC"]


def test_missing_offsets_are_damage(log, schemas) -> None:
    first, second = SegmentWriter(schemas), SegmentWriter(schemas, base=5)
    first.write(("NoOpRecord", {}))
    second.write(("NoOpRecord", {}))
    store(log, first)
    store(log, second, base=5)
    states(log, schemas)
    assert log.damage == [f"{5:020}.log: offsets 1 to 4 are missing"]


def test_record_of_an_unknown_type_is_damage_and_passed_over(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write_value(b"\x01\xc8\x01\x00")
    writer.write(TOPIC, partition())
    store(log, writer)
    assert len(states(log, schemas)) == 2
    assert log.damage == ["the record at offset 0: no record of type 200 in frame version 1"]


def test_replica_that_was_moved_away_is_stray(log, schemas) -> None:
    writer = SegmentWriter(schemas)
    writer.write(TOPIC, partition())
    writer.write(change(Replicas=[2, 3, 4]))
    store(log, writer)
    folded = MetadataStates(WallClocks(0))
    list(folded.rows(read_metadata(log, schemas)))
    assert folded.is_stray("orders", TOPIC_ID, 0, 1)
    assert not folded.is_stray("orders", TOPIC_ID, 0, 4)
    assert not folded.is_stray("orders", "another", 0, 1)


def test_states_of_two_clusters_without_zookeeper_are_both_evidence(tmp_path, schemas) -> None:
    topics = []
    for place, broker, name in ((EAST, "b1", "orders"), (WEST, "b11", "east.orders")):
        nodes = tmp_path / "nodes" if place == EAST else tmp_path / WEST / "nodes"
        folder = nodes / broker / "data" / FOLDER
        folder.mkdir(parents=True)
        writer = SegmentWriter(schemas)
        writer.lead(controller=1, epoch=1)
        writer.write(("TopicRecord", {"Name": name, "TopicId": TOPIC_ID}), partition())
        writer.lead(controller=1, epoch=1)
        (folder / FIRST_SEGMENT).write_bytes(writer.data)
        topics.append(
            TopicFact(
                name=name, topic_id=TOPIC_ID, partitions=1, replication_factor=1, cluster=place
            )
        )
    facts = RunFacts(run="r1", seed=1, scenario="s", target="kafka-kraft", runtime="process",
                     boot_id="boot", command="urteil run s", topics=topics,
                     versions={KRAFT: VERSION})  # fmt: skip
    save(tmp_path / "run.json", facts)
    collected = collect(tmp_path)
    rows = pq.read_table(tmp_path / "evidence" / "states").to_pylist()
    assert not collected.problems
    assert {row["topic"] for row in rows if row["topic"]} == {"orders", "east.orders"}
