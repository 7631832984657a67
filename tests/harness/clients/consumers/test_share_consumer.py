"""Members of a share group of a real cluster journal deliveries and acknowledgements."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.harness.clients.specs import spec_of
from tests.waiting import until
from urteil.harness.clients.consumers.share_consumer import configure_group, group_settings
from urteil.harness.clients.libraries.confluent_share_member import ShareMember, share_config
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
    spec = spec_of("s1", "share_consumer", lock_ms="2000", max_poll_records="7")
    config = share_config(spec)
    assert config["share.acknowledgement.mode"] == "explicit"
    assert (config["group.id"], config["max.poll.records"]) == ("urteil-group", 7)
    assert group_settings(spec) == {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": "2000",
    }


@pytest.mark.thorough
def test_late_and_released_records_are_delivered_again(tmp_path: Path) -> None:
    """All are released once or held beyond their lock, and accepted at last."""
    spec = ClusterSpec(config=SHARE_LATE.cluster.config)
    with Cluster(spec, KraftTarget(version="4.4.0"), tmp_path) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        admin.create_topics({"t": {"num_partitions": 1, "replication_factor": 3}})
        admin.close()
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
        for number in range(RECORDS):
            producer.send("t", str(number).encode())
        producer.close()
        rows = [row for turn in range(3) for row in deliveries(cluster, tmp_path, turn)]
    released, late, accepted = (
        [row for row in rows if row["client"] == f"s{turn}"] for turn in range(3)
    )
    assert {row["outcome"] for row in released} == {"ok"}
    assert {(row["outcome"], row["error"]) for row in late} == {("fail", "INVALID_RECORD_STATE")}
    assert {row["outcome"] for row in accepted} == {"ok"}
    assert [row["offset"] for row in accepted] == [*range(RECORDS)]
    for former, later in ((released, late), (late, accepted)):
        counts = highest_counts(former)
        assert counts.keys() == {*range(RECORDS)}
        assert all(count > counts[offset] for offset, count in highest_counts(later).items())


def highest_counts(rows: list[Row]) -> dict[int, int]:
    """Offset to the highest delivery count."""
    pairs = sorted((row["offset"], row["delivery_count"]) for row in rows)
    return dict(pairs)


def deliveries(cluster: Cluster, folder: Path, turn: int) -> list[Row]:
    """What a member does that releases all records, is late with all, or accepts all."""
    options = (
        {"releases": "1"},
        {"releases": "0", "rejects": "0", "late_acknowledgements": "1"},
        {"releases": "0", "rejects": "0"},
    )[turn]
    path = folder / f"s{turn}.jsonl"
    spec = spec_of(f"s{turn}", "share_consumer", lock_ms="1000", **options)
    spec = msgspec.structs.replace(spec, bootstrap=tuple(cluster.bootstrap))
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
        pid=1, library="confluent-kafka", version="2", topic_ids={"t": "id"},
    )  # fmt: skip


def rows_of(path: Path) -> list[Row]:
    rows = JournalRows("r")
    return [
        row for entry in JournalReader(path) for table, row in rows.take(entry)
        if table == "deliveries"
    ]  # fmt: skip
