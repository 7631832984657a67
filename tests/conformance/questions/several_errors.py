"""Requests with several errors: which error is answered, and for which elements."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups import commit, offset_fetch
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled, spread
from tests.conformance.records import batch, produce
from tests.conformance.transactions import Txn, new_producer
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetForLeaderEpochRequest,
)

LONG = "x" * 5000
GARBAGE = {"zeros": bytes(61), "ones": b"\xff" * 70, "magic 9": b"\0" * 11 + b"\x30\0\0\0\0\x09"}
NO_NODES = {repr(name): name for name in ("", ".", "..")}


# -- groups -------------------------------------------------------------------------------------


@Subject("OffsetCommit", ApiKey.OFFSET_COMMIT).each(
    "too much metadata by", {"nobody": (-1, ""), "an old generation": (7, "somebody")}, since=1
)
def committed(asker: Asker, who: tuple[int, str]) -> Any:
    """Beside one that may be stored, one that is not there, and topics without partitions."""
    topic, group = filled(asker.side), asker.name("several")
    at = asker.side.coordinator(group)
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    asked = commit(group, [(topic, 1, 3), (topic, 0, 1)], generation=who[0], member=who[1])
    large = commit(group, [(topic, 0, 2), ("never-there", 0, 2), (topic, 9, 2)], metadata=LONG)
    empty = [kind(name=topic, partitions=[]), kind(name="neither-there", partitions=[])]
    combined = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=who[0],
        member_id=who[1],
        topics=[*asked.topics, *large.topics, *empty],
    )
    positions = offset_fetch(8, (group, [(topic, [0, 1])]))
    return [by_place(asker.ask(combined, to=at)), asker.side.ask(positions, 8, to=at)]


def by_place(answer: Any) -> Any:
    """Partitions that a hash map put into an order."""
    return [
        (
            topic["name"],
            sorted(topic["partitions"], key=lambda partition: int(partition["partition_index"])),
        )
        for topic in sorted(answer["topics"], key=lambda topic: str(topic["name"]))
    ]


@Subject("TxnOffsetCommit", ApiKey.TXN_OFFSET_COMMIT).question("too much metadata by a stranger")
def committed_in_a_transaction(asker: Asker) -> Any:
    """The group is there from then on."""
    topic, group = filled(asker.side), asker.name("several")
    at = asker.side.coordinator(group)
    txn = new_producer(asker, producer_id=4711)
    request = txn.commit_offsets(group, {(topic, 0): 1, ("never-there", 0): 1})
    (partition,) = request.topics[0].partitions
    large = type(partition)(partition_index=0, committed_offset=1, committed_metadata=LONG)
    topics = [type(request.topics[0])(name=topic, partitions=[large]), *request.topics[1:]]
    combined = type(request)(
        transactional_id=txn.name, group_id=group, producer_id=4711, topics=topics
    )
    return [asker.ask(combined, to=at), described(asker, group, at)]


def described(asker: Asker, group: str, at: int) -> Any:
    return asker.side.ask(DescribeGroupsRequest(groups=[group]), 0, to=at)


@Subject("OffsetDelete", ApiKey.OFFSET_DELETE).question("nothing that is there")
def deleted(asker: Asker) -> Any:
    """The group stays as it is; without one there is an error."""
    group, kind = asker.name("several"), OffsetDeleteRequest
    at = asker.side.coordinator(group)
    partition = kind.OffsetDeleteRequestPartition(partition_index=9)
    request = kind(
        group_id=group,
        topics=[
            kind.OffsetDeleteRequestTopic(name="never-there", partitions=[]),
            kind.OffsetDeleteRequestTopic(name=filled(asker.side), partitions=[partition]),
        ],
    )
    answers = [asker.ask(request, to=at)]
    asker.side.ask(commit(group, [("never-there", 0, 1), (filled(asker.side), 0, 1)]), 8, to=at)
    return [*answers, asker.ask(request, to=at), described(asker, group, at)]


# -- records and offsets ------------------------------------------------------------------------


PRODUCE = Subject("Produce", ApiKey.PRODUCE)


@PRODUCE.each("beside garbage", GARBAGE)
def beside_garbage(asker: Asker, data: bytes) -> Any:
    """A first batch that cannot be distinguished from garbage fails the whole request."""
    topic = asker.topic([(1,), (1,)])
    return asker.ask(
        produce(topic, batch([b"a"]), more=[(topic, 1, data), ("never-there", 0, data)])
    )


@PRODUCE.question("beside a transaction without its id", since=3)
def beside_a_transaction(asker: Asker) -> Any:
    topic = asker.topic([(1,), (1,)])
    records = Txn(name="", producer_id=9, epoch=0, at=1).records(0)
    return asker.ask(produce(topic, batch([b"a"]), more=[(topic, 1, records)]))


@PRODUCE.each("with acks 2 or none at all", {"2": 2, "all": -1}, since=3)
def to_places_that_are_none(asker: Asker, acks: int) -> Any:
    """Empty ones, and such as take nothing."""
    asker.side.coordinator("any")
    more = [("never-there", 0, b""), ("__consumer_offsets", 0, b""), ("..", 0, batch([b"a"]))]
    more += [("__consumer_offsets", 1, batch([b"a"])), ("__consumer_offsets", 999, b"")]
    return asker.ask(produce(filled(asker.side), b"", acks=acks, more=more))


LIST = Subject("ListOffsets", ApiKey.LIST_OFFSETS)
TIMES = {f"time {n}": (n, -1, 0) for n in range(-7, 1)}
ASKED = TIMES | {"isolation 2": (-1, -1, 2), "epoch -2": (-1, -2, 0), "epoch -9": (0, -9, 1)}


@LIST.each("where nobody leads,", ASKED)
def listed(asker: Asker, asked: tuple[int, int, int]) -> Any:
    """Of a partition that is led elsewhere, and of one that is not there."""
    time, epoch, isolation = asked
    kind = ListOffsetsRequest
    places = [
        kind.ListOffsetsPartition(partition_index=n, timestamp=time, current_leader_epoch=epoch)
        for n in (1, 9)
    ]
    topics = [kind.ListOffsetsTopic(name=spread(asker.side), partitions=places)]
    return asker.ask(kind(replica_id=-1, isolation_level=isolation, topics=topics))


@Subject("OffsetForLeaderEpoch", ApiKey.OFFSET_FOR_LEADER_EPOCH).each(
    "where nobody leads, of epoch", {"-1": -1, "-2": -2}, since=2
)
def epochs(asker: Asker, epoch: int) -> Any:
    kind = OffsetForLeaderEpochRequest
    partition = kind.OffsetForLeaderPartition(
        partition=1, current_leader_epoch=epoch, leader_epoch=0
    )
    topic = kind.OffsetForLeaderTopic(topic=spread(asker.side), partitions=[partition])
    return asker.ask(kind(replica_id=-1, topics=[topic]))


@Subject("DescribeProducers", ApiKey.DESCRIBE_PRODUCERS).question("of names that are none")
def producers(asker: Asker) -> Any:
    kind = DescribeProducersRequest.TopicRequest
    names = ("", "..", "no name!", "x" * 250, "never-there", filled(asker.side))
    return asker.ask(
        DescribeProducersRequest(topics=[kind(name=name, partition_indexes=[9]) for name in names])
    )


# -- administration -----------------------------------------------------------------------------


@Subject("DescribeConfigs", ApiKey.DESCRIBE_CONFIGS).each(
    "beside a resource of kind", {str(n): n for n in (0, 1, 3, 5, 99, -1)}
)
def configs(asker: Asker, kind: int) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = [(2, filled(asker.side)), (kind, "x"), (2, "never-there")]
    return asker.ask(
        DescribeConfigsRequest(
            resources=[
                resource(resource_type=resource_type, resource_name=name)
                for resource_type, name in asked
            ]
        )
    )


CREATE = CreateTopicsRequest
NULL = (CREATE.CreatableTopicConfig(name="retention.ms", value=None),)
BAD = (CREATE.CreatableTopicConfig(name="retention.ms", value="long"),)
GIVEN = (CREATE.CreatableReplicaAssignment(partition_index=3, broker_ids=[1]),)
WRONG: dict[str, dict[str, Any]] = {
    "null config": {"num_partitions": 1, "replication_factor": 1, "configs": NULL},
    "bad config": {"num_partitions": 1, "replication_factor": 1, "configs": BAD},
    "counts and assignment": {
        "num_partitions": 1, "replication_factor": -1, "assignments": GIVEN, "configs": BAD,
    },
    "no partitions": {"num_partitions": 0, "replication_factor": 1, "configs": BAD},
    "too many replicas": {"num_partitions": 1, "replication_factor": 9, "configs": BAD},
    "wrong assignment": {
        "num_partitions": -1, "replication_factor": -1, "assignments": GIVEN, "configs": BAD,
    },
}  # fmt: skip


@Subject("CreateTopics", ApiKey.CREATE_TOPICS).each("two things wrong,", WRONG, since=4)
def created(asker: Asker, wrong: dict[str, Any]) -> Any:
    """Each with a name that is none, one that collides and one that is taken."""
    taken = asker.topic(kind="a.b")
    names = ("no name!", taken.replace("a.b", "a_b"), taken)
    topics = [CREATE.CreatableTopic(name=name, **wrong) for name in names]
    return asker.ask_controller(CREATE(topics=topics, timeout_ms=5000))


@Subject("CreatePartitions", ApiKey.CREATE_PARTITIONS).each("beside the name", NO_NODES)
def grown(asker: Asker, name: str) -> Any:
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    topics = [kind(name=topic, count=2, assignments=None) for topic in ("never-there", name)]
    return asker.ask_controller(CreatePartitionsRequest(topics=topics, timeout_ms=1000))


@Subject("DeleteTopics", ApiKey.DELETE_TOPICS).question("a name and an id beside others", since=6)
def removed(asker: Asker) -> Any:
    topic, kind = asker.topic(), DeleteTopicsRequest.DeleteTopicState
    states = [
        kind(name=topic),
        kind(name=topic, topic_id=asker.side.ids[topic]),
        kind(name="never"),
    ]
    return asker.ask_controller(DeleteTopicsRequest(topics=states, timeout_ms=1000))


@Subject("AddPartitionsToTxn", ApiKey.ADD_PARTITIONS_TO_TXN).question(
    "of an internal topic", until=3
)
def added(asker: Asker) -> Any:
    txn = new_producer(asker)
    asker.side.coordinator("any")
    places = [("__consumer_offsets", 0), ("__consumer_offsets", 999), (filled(asker.side), 0)]
    return [
        asker.ask(txn.add(places[0]), to=txn.at),
        asker.ask(txn.add(*places, ("never-there", 0)), to=txn.at),
    ]
