"""Members of a share group of a real cluster journal deliveries and acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME
from kafka import KafkaAdminClient, KafkaProducer

from tests.harness.clients.specs import spec_of
from tests.waiting import until
from urteil.harness.clients.consumers.share_consumer import configure_group, group_settings
from urteil.harness.clients.libraries import CONFLUENT, JAVA
from urteil.harness.clients.libraries.java_share_consumer import JavaRecord
from urteil.harness.clients.libraries.share_member import ShareMember, share_config
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.journal import Begin, JournalReader, JournalWriter
from urteil.harness.evidence.journal_rows import JournalRows, Row
from urteil.harness.scenario import ClusterSpec
from urteil.harness.scenarios.share_groups import SHARE_LATE
from urteil.harness.targets import KraftTarget

RECORDS = 30


def test_members_acknowledge_explicitly_and_begin_at_the_start() -> None:
    spec = spec_of("m1", "share_consumer", lock_ms="2000", max_poll_records="7")
    config = share_config(spec)
    assert config["share.acknowledgement.mode"] == "explicit"
    assert (config["group.id"], config["max.poll.records"]) == ("urteil-group", 7)
    assert group_settings(spec) == {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": "2000",
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    spec = ClusterSpec(config=SHARE_LATE.cluster.config)
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(spec, KraftTarget(version="4.4.0"), folder) as cluster:
        yield cluster


@pytest.mark.thorough
@pytest.mark.parametrize(("library", "late_outcome"), [(CONFLUENT, "fail"), (JAVA, "info")])
def test_late_and_released_records_are_delivered_again(
    library: str, late_outcome: str, cluster: Cluster, tmp_path: Path
) -> None:
    """All are released, then held beyond their locks, and accepted at last. The Java client repeats
    acknowledgements, so that its errors leave the effect unknown."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.create_topics({library: {"num_partitions": 1, "replication_factor": 3}})
    admin.close()
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    for number in range(RECORDS):
        headers = [("h", b"1"), ("h", b"")]
        producer.send(library, str(number).encode(), key=b"k", headers=headers)
    producer.close()
    rows = [row for turn in range(3) for row in deliveries(cluster, tmp_path, library, turn)]
    released, late, accepted = (
        [row for row in rows if row["client"] == f"m{turn}"] for turn in range(3)
    )
    assert {row["outcome"] for row in released} == {"ok"}
    outcomes = {(row["outcome"], row["error"]) for row in late}
    assert outcomes == {(late_outcome, "INVALID_RECORD_STATE")}
    assert {row["outcome"] for row in accepted} == {"ok"}
    assert [row["offset"] for row in accepted] == [*range(RECORDS)]
    assert {(row["key"], row["leader_epoch"]) for row in rows} == {("k", 0)}
    for former, later in ((released, late), (late, accepted)):
        counts = highest_counts(former)
        assert counts.keys() == {*range(RECORDS)}
        assert all(count > counts[offset] for offset, count in highest_counts(later).items())


def test_java_record_has_the_methods_of_a_message() -> None:
    line = "t 1 7 3 1000 0 2 =aw== - ==aA==:=MQ==,=aQ==:-"
    record = JavaRecord(line.split(" "))
    assert (record.topic(), record.partition(), record.offset()) == ("t", 1, 7)
    assert (record.leader_epoch(), record.delivery_count()) == (3, 2)
    assert (record.key(), record.value()) == (b"k", None)
    assert record.headers() == [("h", b"1"), ("i", None)]
    assert record.timestamp() == (TIMESTAMP_CREATE_TIME, 1000)
    assert JavaRecord(["t", "1", "7", "-1", "1000", "1", "-1", "-", "=", "="]).headers() == []


def highest_counts(rows: list[Row]) -> dict[int, int]:
    """Offset to the highest delivery count."""
    pairs = sorted((row["offset"], row["delivery_count"]) for row in rows)
    return dict(pairs)


def deliveries(cluster: Cluster, folder: Path, library: str, turn: int) -> list[Row]:
    """What a member does that releases all records, is late with all, or accepts all."""
    options = (
        {"releases": "1"},
        {"releases": "0", "rejects": "0", "late_acknowledgements": "1"},
        {"releases": "0", "rejects": "0"},
    )[turn]
    path = folder / f"m{turn}.jsonl"
    spec = spec_of(f"m{turn}", "share_consumer", lock_ms="1000", **options)
    workload = msgspec.structs.replace(spec.workload, client=library, group=f"{library}-group")
    topic = msgspec.structs.replace(spec.topics[0], name=library)
    spec = msgspec.structs.replace(
        spec,
        bootstrap=tuple(cluster.bootstrap),
        journal=str(path),
        topics=(topic,),
        workload=workload,
    )
    stop = Stop()
    configure_group(spec, stop)
    with JournalWriter(path) as journal:
        journal.write(begin(spec))
        member = ShareMember(spec, journal)

        def delivered_offsets() -> set[int]:
            member.step(stop)
            return {row["offset"] for row in rows_of(path)}

        until(lambda: len(delivered_offsets()) == RECORDS, "all records are delivered")
        member.close()
        journal.end(1)
    return rows_of(path)


def begin(spec: ClientSpec) -> Begin:
    return Begin(
        run="r", client=spec.client, session=1, kind=spec.kind, at_ns=0, wall_ns=0, boot_id="boot",
        pid=1, library="confluent-kafka", version="2", topic_ids={spec.topics[0].name: "id"},
    )  # fmt: skip


def rows_of(path: Path) -> list[Row]:
    rows = JournalRows("r")
    return [
        row for entry in JournalReader(path) for table, row in rows.take(entry)
        if table == "deliveries"
    ]  # fmt: skip
