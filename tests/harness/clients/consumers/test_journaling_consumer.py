"""Passes over a log that changes while it is read, and polls of librdkafka, on a real broker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from msgspec.structs import replace

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.consumers.journaling_consumer import JournalingConsumer
from urteil.harness.clients.libraries.confluent_consumer import Reader
from urteil.harness.clients.spec import consumer_config
from urteil.harness.clients.stop import Stop
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.journal import JournalReader, JournalWriter, PassBegin, PassEnd, Poll
from urteil.harness.scenario import ClusterSpec, TopicFact
from urteil.harness.targets import parse_target
from urteil.harness.verify.derived.small_evidence import sort_passes

RECORDS, DELETED = 9, 4
LONG_S = 60.0
PLACE = TopicPartition("t", 0)


def test_final_pass_restarts_after_the_log_lost_its_beginning(tmp_path: Path) -> None:
    with Cluster(ClusterSpec(brokers=1), parse_target("urteil"), tmp_path / "run") as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        admin.create_topics([NewTopic("t", 1, 1)])
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
        for _ in range(RECORDS):
            producer.send("t", b"value").get(timeout=30)
        producer.close()
        _poll_with_librdkafka(tmp_path / "c1.jsonl", cluster.bootstrap)
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


def _poll_with_librdkafka(path: Path, bootstrap: Sequence[str]) -> None:
    """A poll returns when there is a record, with the others that are there; it does not wait until
    there are as many as it may return."""
    topic = TopicFact(name="t", topic_id="-", partitions=1, replication_factor=1)
    spec = replace(spec_of("c1", "consumer"), bootstrap=tuple(bootstrap), topics=(topic,))
    with JournalWriter(path) as journal:
        reader = Reader(spec, journal)
        reader.start(Stop())
        began = time.monotonic()
        reader.step(Stop(), wait_s=LONG_S)
        assert time.monotonic() - began < LONG_S
        reader.close()
    (polled,) = (entry for entry in JournalReader(path) if isinstance(entry, Poll))
    assert polled.slices


def test_restarted_complete_pass_is_not_short() -> None:
    reader = {"client": "final-1", "to_offset": 2 * DELETED, "isolation": "read_uncommitted"}
    first = reader | {"from_offset": 0, "complete": False}
    again = reader | {"from_offset": DELETED, "complete": True}
    other = again | {"client": "final-2"}
    assert sort_passes([first, again], frozenset()) == ([again], [])
    assert sort_passes([first, other], frozenset()) == ([other], [first])
