"""One log directory, opened by turns by Apache Kafka and by ours, after clean stops and SIGKILL."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kazoo.exceptions import NoNodeError

from tests.conformance.records import NOW_MS, batch, produce
from tests.conformance.side import Side
from tests.interop.contents import Contents, contents
from tests.waiting import until
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import InitProducerIdRequest
from urteil.harness.cluster import Cluster
from urteil.harness.run.topics import create_topics
from urteil.harness.scenario import ClusterSpec, TopicSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget

PLAIN, TRANSACTIONS, COMPACTED = TOPICS = ("plain", "transactions", "compacted")
SMALL = {"segment.bytes": "16384", "index.interval.bytes": "512", "retention.ms": "-1"}
COMPACT = {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
ASKED = tuple(
    TopicSpec(
        name=name,
        partitions=1,
        replication_factor=1,
        config=COMPACT if name == COMPACTED else SMALL,
    )
    for name in TOPICS
)
CODECS = range(5)  # none, gzip, snappy, lz4, zstd
NODE = "b1"


class Life:
    """The cluster's one broker, from a start to an end, as the kind that it is then."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.side = Side("one", cluster.bootstrap)
        self.side.until(self.side.answers, deadline_s=60)
        for topic in cluster.state.topics():
            self.side.until(partial(self.side.serves, topic, 0, 1), deadline_s=60)

    def end(self, next_kind: Target, *, kill: bool) -> Life:
        """Stop it in one way or the other, and start the next one in its log directory."""
        self.side.close()
        controls = self._cluster.controls()
        controls.kill(NODE) if kill else controls.stop(NODE)
        for left in ("/brokers/ids/1", "/controller"):  # of a session that nobody waits for
            with suppress(NoNodeError):
                self._cluster.zk.delete(left)
        self._cluster.become(NODE, next_kind)
        controls.start(NODE)
        self._cluster.await_healthy(deadline_s=60)
        return Life(self._cluster)

    def read(self, epochs: int) -> dict[str, Contents]:
        """Not the compacted topic's offsets by time: of a segment that was emptied, Apache Kafka
        takes the file's own time for its largest timestamp, looks there, and answers that there
        is no such record; ours looks on."""
        return {
            topic: contents(self.side, topic, epochs=epochs, by_time=topic != COMPACTED)
            for topic in TOPICS
        }


class Writer:
    """An idempotent producer that outlives its brokers."""

    def __init__(self, life: Life) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        self._id = life.side.get(request, 4).producer_id
        self._next = 0
        self._rng = random.Random(7)
        self._last: tuple[bytes, int] = (b"", -1)

    def write(self, life: Life, batches: int = 12) -> None:
        """Batches of every codec, over several segments."""
        for number in range(batches * len(CODECS)):
            values = [self._rng.randbytes(40) + b"a" * 60 for _ in range(4)]
            data = self._batch(values, compression=CODECS[number % len(CODECS)])
            self._last = data, self._send(life, data)
            self._next += len(values)

    def check(self, life: Life) -> None:
        """A broker that knows the producer's state takes no batch twice, and none out of order."""
        data, offset = self._last
        assert self._send(life, data) == offset
        self._next += 1
        answer = life.side.get(produce(PLAIN, self._batch([b"too far"])), 8)
        assert answer.responses[0].partition_responses[0].error_code == OUT_OF_ORDER
        self._next -= 1

    def _batch(self, values: list[bytes], **options: int) -> bytes:
        at_ms = NOW_MS + self._next * 10
        where = {"producer_id": self._id, "producer_epoch": 0, "base_sequence": self._next}
        return batch(values, at_ms=at_ms, **where, **options)

    def _send(self, life: Life, data: bytes) -> int:
        answer = life.side.get(produce(PLAIN, data), 8).responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NONE, answer
        return int(answer.base_offset)


OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def transact(life: Life, bootstrap: list[str]) -> None:
    """Of six transactions, two at a time: three committed, two aborted, one left open."""
    settings = {"bootstrap.servers": ",".join(bootstrap), "transaction.timeout.ms": 600_000}
    producers = [Producer({**settings, "transactional.id": f"t{number}"}) for number in range(2)]
    for producer in producers:
        producer.init_transactions(20)
    for turn in range(3):
        for producer in producers:
            producer.begin_transaction()
        for number in range(40):
            producer = producers[number % 2]
            producer.produce(TRANSACTIONS, b"%d" % number * 20, key=b"k%d" % number, partition=0)
            if number % 10 > 7:
                producer.flush(20)
        producers[0].commit_transaction(20)
        if turn < 2:
            producers[1].abort_transaction(20)
        else:
            assert producers[1].flush(20) == 0


def overwrite(life: Life, cluster: Cluster) -> None:
    """Few keys, many values; returned when all but the active segment was compacted."""
    for number in range(60):
        values = [b"%d" % (number * 20 + each) * 8 for each in range(20)]
        life.side.get(produce(COMPACTED, batch(values, at_ms=NOW_MS + number)), 8)
    data = cluster.data_dirs()[1]

    def is_clean() -> bool:
        active = max(int(path.stem) for path in (data / f"{COMPACTED}-0").glob("*.log"))
        return f"{COMPACTED} 0 {active}\n" in (data / "cleaner-offset-checkpoint").read_text()

    until(is_clean, "compacted", deadline_s=60)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    config = {
        "log.cleaner.backoff.ms": "200",
        "log.initial.task.delay.ms": "200",
        "zookeeper.session.timeout.ms": "30000",
    }
    with Cluster(ClusterSpec(brokers=1, config=config), UrteilTarget(), tmp_path) as started:
        yield started


@pytest.mark.timeout(240)
@pytest.mark.thorough
def test_a_log_directory_is_the_same_to_both_kinds(cluster: Cluster) -> None:
    create_topics(cluster.bootstrap, ASKED)
    life = Life(cluster)
    writer = Writer(life)
    writer.write(life)
    ours = life.read(1)
    assert len(ours[PLAIN].records) > 200

    life = life.end(KafkaTarget(), kill=False)
    assert life.read(1) == ours
    writer.check(life)
    writer.write(life)
    transact(life, cluster.bootstrap)
    overwrite(life, cluster)
    theirs = life.read(2)
    assert len(theirs[TRANSACTIONS].aborted) == 2
    assert theirs[TRANSACTIONS].bounds[2] < theirs[TRANSACTIONS].bounds[1]
    assert len(theirs[COMPACTED].records) < 1200

    life = life.end(UrteilTarget(), kill=True)
    assert life.read(2) == theirs
    writer.check(life)
    writer.write(life)
    overwrite(life, cluster)
    ours = life.read(3)
    assert len(ours[COMPACTED].records) < 1200

    life = life.end(KafkaTarget(), kill=True)
    assert life.read(3) == ours
    writer.check(life)
    writer.write(life, batches=3)
    theirs = life.read(4)

    life = life.end(UrteilTarget(), kill=False)
    assert life.read(4) == theirs
    writer.check(life)
