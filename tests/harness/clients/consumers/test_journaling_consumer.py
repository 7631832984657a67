"""Passes over a log that changes while it is read, on a real broker."""

from __future__ import annotations

from pathlib import Path

from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from msgspec.structs import replace

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.consumers.journaling_consumer import JournalingConsumer
from urteil.harness.clients.spec import consumer_config
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.journal import JournalReader, JournalWriter, PassBegin, PassEnd
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import parse_target
from urteil.harness.verify.derived.small_evidence import sort_passes

RECORDS, DELETED = 9, 4
PLACE = TopicPartition("t", 0)


def test_final_pass_restarts_after_the_log_lost_its_beginning(tmp_path: Path) -> None:
    with Cluster(ClusterSpec(brokers=1), parse_target("urteil"), tmp_path / "run") as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        admin.create_topics([NewTopic("t", 1, 1)])
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
        for _ in range(RECORDS):
            producer.send("t", b"value").get(timeout=30)
        producer.close()
        spec = spec_of("final-1", "final")
        with JournalWriter(tmp_path / "final-1.jsonl") as journal:
            spec = replace(spec, bootstrap=tuple(cluster.bootstrap))
            consumer = JournalingConsumer(spec, journal, consumer_config(spec))
            consumer.assign([PLACE])
            consumer.begin(PLACE, 0, RECORDS, final=True)
            admin.delete_records({PLACE: DELETED})
            admin.close()
            while consumer.position(PLACE) < RECORDS:
                consumer.poll()
            consumer.end(PLACE, complete=True)
            consumer.close()

    entries = list(JournalReader(tmp_path / "final-1.jsonl"))
    begun = [entry for entry in entries if isinstance(entry, PassBegin)]
    assert [(entry.from_offset, entry.to_offset, entry.final) for entry in begun] == [
        (0, RECORDS, True), (DELETED, RECORDS, True)
    ]  # fmt: skip
    ended = [entry.to_offset for entry in entries if isinstance(entry, PassEnd)]
    assert ended == [0, RECORDS]


def test_restarted_complete_pass_is_not_short() -> None:
    reader = {"client": "final-1", "to_offset": 2 * DELETED, "isolation": "read_uncommitted"}
    first = reader | {"from_offset": 0, "complete": False}
    again = reader | {"from_offset": DELETED, "complete": True}
    other = again | {"client": "final-2"}
    assert sort_passes([first, again], frozenset()) == ([again], [])
    assert sort_passes([first, other], frozenset()) == ([other], [first])
