"""Metadata: topics by name and id, all, none, made by asking; authorized operations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.conformance.questions.registry import Asked, Subject
from tests.conformance.questions.stage import spread
from tests.conformance.side import CLOSED
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import MetadataRequest

METADATA = Subject("Metadata", ApiKey.METADATA)
STRANGE_ID = UUID("12345678-1234-1234-1234-123456789abc")
Topic = MetadataRequest.MetadataRequestTopic


def metadata(it: Asked, topics: Any, *, create_them: bool = False) -> Any:
    return it.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=create_them))


def named(*names: str | None) -> list[Any]:
    return [Topic(name=name) for name in names]


@METADATA.question("a topic of three partitions", versions=range(13))
def one(it: Asked) -> Any:
    return metadata(it, named(spread(it.side)))


@METADATA.question("a topic asked of another broker")
def elsewhere(it: Asked) -> Any:
    topics = named(spread(it.side))
    return it.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), to=3)


@METADATA.question("a topic twice")
def twice(it: Asked) -> Any:
    return metadata(it, named(spread(it.side), spread(it.side)))


@METADATA.question("no topics", since=1)
def none(it: Asked) -> Any:
    return metadata(it, [])


@METADATA.question("unknown, bad and known names", since=4)
def mixed(it: Asked) -> Any:
    return metadata(it, named("never-there", "a b", "", "..", spread(it.side)))


@METADATA.question("all topics", versions=range(13))
def everything(it: Asked) -> Any:
    """Of the answer, the topic that both sides have had for longest."""
    known = spread(it.side)
    answer = metadata(it, None if it.version else [])
    if answer == CLOSED:
        return answer
    return {**answer, "topics": [one for one in answer["topics"] if one["name"] == known]}


@METADATA.question("null name", since=10)
def null_name(it: Asked) -> Any:
    return metadata(it, named(None))


@METADATA.question("a topic by id", since=10)
def by_id(it: Asked) -> Any:
    name = spread(it.side)
    return metadata(it, [Topic(name=None, topic_id=it.side.ids[name])])


@METADATA.question("a topic by id and name", since=10)
def by_both(it: Asked) -> Any:
    name = spread(it.side)
    return metadata(it, [Topic(name=name, topic_id=it.side.ids[name])])


@METADATA.question("an unknown id", since=10)
def by_unknown_id(it: Asked) -> Any:
    return metadata(it, [Topic(name=None, topic_id=STRANGE_ID)])


@METADATA.question("a name with an unknown id", since=10)
def by_name_and_unknown_id(it: Asked) -> Any:
    return metadata(it, [Topic(name=spread(it.side), topic_id=STRANGE_ID)])


@METADATA.question("authorized operations", versions=(8, 9, 10, 11, 12))
def operations(it: Asked) -> Any:
    return it.ask(
        MetadataRequest(
            topics=named(spread(it.side)),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
    )


@METADATA.question("a topic made by asking", versions=(0, 3, 4, 12))
def made_by_asking(it: Asked) -> Any:
    name = it.name()
    first = metadata(it, named(name, "a b"), create_them=True)

    def led() -> bool:
        answer = it.side.get(MetadataRequest(topics=named(name)), 7).topics[0]
        known = answer.error_code == ErrorCode.NONE
        return known and all(partition.leader_id > 0 for partition in answer.partitions)

    it.side.until(led)
    answer = it.side.get(MetadataRequest(topics=named(name)), 7).topics[0]
    return first, [len(partition.replica_nodes) for partition in answer.partitions]
