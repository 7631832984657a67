"""DeleteRecords: on every replica, and why not."""

from __future__ import annotations

from typing import Any

from tests.conformance.questions.registry import RUN, Asker, Subject
from tests.conformance.records import batch, produce
from tests.conformance.side import Side
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import DeleteRecordsRequest, ListOffsetsRequest

DELETE = Subject("DeleteRecords", ApiKey.DELETE_RECORDS)
Topic = DeleteRecordsRequest.DeleteRecordsTopic
Partition = DeleteRecordsRequest.DeleteRecordsPartition
RECORDS = 12


def fill(side: Side, topic: str) -> str:
    for n in range(RECORDS // 3):
        side.ask(produce(topic, batch([b"%d-%d" % (n, m) for m in range(3)])), 9)
    return topic


def retained_records(side: Side) -> str:
    """Records that no question deletes; partition 1 is led by broker 2."""
    return side.make_once(_fill_retained)


def _fill_retained(side: Side) -> str:
    return fill(side, side.create(f"kept-{RUN}", [(1, 2), (2, 1)]))


def request(*offsets: tuple[str, int, int], timeout_ms: int = 10_000) -> DeleteRecordsRequest:
    topics: dict[str, list[Any]] = {}
    for topic, index, offset in offsets:
        topics.setdefault(topic, []).append(Partition(partition_index=index, offset=offset))
    return DeleteRecordsRequest(
        topics=[Topic(name=name, partitions=ones) for name, ones in topics.items()],
        timeout_ms=timeout_ms,
    )


def earliest(side: Side, topic: str, *, to: int) -> int:
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-2)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])]
    answer = side.get(ListOffsetsRequest(replica_id=-2, topics=topics), 4, to=to)
    return int(answer.topics[0].partitions[0].offset)


@DELETE.question("on every replica, less and less")
def everywhere(asker: Asker) -> Any:
    topic = fill(asker.side, asker.topic([(1, 2, 3)]))
    answers = []
    for offset in (4, 3, -1, RECORDS):
        answers.append(asker.ask(request((topic, 0, offset))))
        answers.append([earliest(asker.side, topic, to=broker) for broker in (1, 2, 3)])
    return answers


@DELETE.question("no time to wait for the followers")
def delete_without_waiting(asker: Asker) -> Any:
    """The leader's part is done; the followers hear of it by their next fetch."""
    topic = fill(asker.side, asker.topic([(1, 2, 3)]))
    answer = asker.ask(request((topic, 0, 5), timeout_ms=0))
    asker.side.until(lambda: earliest(asker.side, topic, to=3) == 5)
    return [answer, earliest(asker.side, topic, to=1)]


REFUSED: dict[str, Any] = {
    "beyond the end": lambda name: [(name, 0, RECORDS + 1)],
    "offset -2": lambda name: [(name, 0, -2)],
    "led elsewhere": lambda name: [(name, 1, 0)],
    "unknown partition": lambda name: [(name, 7, 0)],
    "partition -1": lambda name: [(name, -1, 0)],
    "unknown topic": lambda name: [("never-there", 0, 0)],
    "empty name": lambda name: [("", 0, 0)],
    "bad name": lambda name: [("a b", 0, 0)],
    "offsets topic": lambda name: [("__consumer_offsets", 0, 0)],
    "several": lambda name: [(name, 0, -2), (name, 1, 0), ("never-there", 0, 0)],
    "a partition twice": lambda name: [(name, 0, -2), (name, 0, RECORDS + 1)],
    "nothing": lambda name: [],
}


@DELETE.each("refused", REFUSED)
def rejected_deletions(asker: Asker, offsets: Any) -> Any:
    asker.side.coordinator("any")  # so that the topic of offsets is there
    return asker.ask(request(*offsets(retained_records(asker.side))))


POLICIES = {policy: {"cleanup.policy": policy} for policy in ("compact", "compact,delete")}


@DELETE.each("policy", POLICIES)
def policies(asker: Asker, configs: dict[str, str]) -> Any:
    kind = configs["cleanup.policy"].replace(",", "-")
    return asker.ask(request((fill(asker.side, asker.topic(configs=configs, kind=kind)), 0, 3)))
