"""Metadata: topics by name and id, all, none, made by asking; authorized operations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import spread
from tests.conformance.side import CLOSED
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import MetadataRequest

METADATA = Subject("Metadata", ApiKey.METADATA)
STRANGE_ID = UUID("12345678-1234-1234-1234-123456789abc")
Topic = MetadataRequest.MetadataRequestTopic


def metadata(asker: Asker, topics: Any, *, create_them: bool = False) -> Any:
    return asker.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=create_them))


def named(*names: str | None) -> list[Any]:
    return [Topic(name=name) for name in names]


@METADATA.question("a topic of three partitions", versions=range(13))
def single_topic(asker: Asker) -> Any:
    return metadata(asker, named(spread(asker.side)))


@METADATA.question("a topic asked of another broker")
def elsewhere(asker: Asker) -> Any:
    topics = named(spread(asker.side))
    return asker.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), to=3)


@METADATA.question("a topic twice")
def twice(asker: Asker) -> Any:
    return metadata(asker, named(spread(asker.side), spread(asker.side)))


@METADATA.question("no topics", since=1)
def none(asker: Asker) -> Any:
    return metadata(asker, [])


@METADATA.question("unknown, bad and known names", since=4)
def mixed(asker: Asker) -> Any:
    return metadata(asker, named("never-there", "a b", "", "..", spread(asker.side)))


@METADATA.question("all topics", versions=range(13))
def everything(asker: Asker) -> Any:
    """Of the answer, the topic that both sides have had for longest."""
    known = spread(asker.side)
    answer = metadata(asker, None if asker.version else [])
    if answer == CLOSED:
        return answer
    return {**answer, "topics": [topic for topic in answer["topics"] if topic["name"] == known]}


@METADATA.question("null name", since=10)
def null_name(asker: Asker) -> Any:
    return metadata(asker, named(None))


@METADATA.question("a topic by id", since=10)
def by_id(asker: Asker) -> Any:
    name = spread(asker.side)
    return metadata(asker, [Topic(name=None, topic_id=asker.side.ids[name])])


@METADATA.question("a topic by id and name", since=10)
def by_both(asker: Asker) -> Any:
    name = spread(asker.side)
    return metadata(asker, [Topic(name=name, topic_id=asker.side.ids[name])])


@METADATA.question("an unknown id", since=10)
def by_unknown_id(asker: Asker) -> Any:
    return metadata(asker, [Topic(name=None, topic_id=STRANGE_ID)])


@METADATA.question("a name with an unknown id", since=10)
def by_name_and_unknown_id(asker: Asker) -> Any:
    return metadata(asker, [Topic(name=spread(asker.side), topic_id=STRANGE_ID)])


@METADATA.question("authorized operations", versions=(8, 9, 10, 11, 12))
def operations(asker: Asker) -> Any:
    return asker.ask(
        MetadataRequest(
            topics=named(spread(asker.side)),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
    )


@METADATA.question("a topic made by asking", versions=(0, 3, 4, 12))
def made_by_asking(asker: Asker) -> Any:
    name = asker.name()
    first = metadata(asker, named(name, "a b"), create_them=True)

    def led() -> bool:
        answer = asker.side.get(MetadataRequest(topics=named(name)), 7).topics[0]
        known = answer.error_code == ErrorCode.NONE
        return known and all(partition.leader_id > 0 for partition in answer.partitions)

    asker.side.until(led)
    answer = asker.side.get(MetadataRequest(topics=named(name)), 7).topics[0]
    return first, [len(partition.replica_nodes) for partition in answer.partitions]
