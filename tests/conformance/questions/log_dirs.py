"""DescribeLogDirs and AlterReplicaLogDirs, with one directory a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled
from tests.conformance.side import Side
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

DESCRIBE = Subject("DescribeLogDirs", ApiKey.DESCRIBE_LOG_DIRS)
ALTER = Subject("AlterReplicaLogDirs", ApiKey.ALTER_REPLICA_LOG_DIRS)
Topic = DescribeLogDirsRequest.DescribableLogDirTopic
Moved = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
Dir = AlterReplicaLogDirsRequest.AlterReplicaLogDir


def directory(side: Side) -> str:
    """Broker 1's only log directory, which answers call `the directory` from now on."""
    return side.make_once(_directory)


def _directory(side: Side) -> str:
    (directory,) = side.get(DescribeLogDirsRequest(topics=[]), 4).results
    side.names[directory.log_dir] = "the directory"
    return str(directory.log_dir)


def describe(asker: Asker, topics: Mapping[str, Sequence[int]] | None) -> Any:
    directory(asker.side)
    asked = None
    if topics is not None:
        asked = [Topic(topic=name, partitions=partitions) for name, partitions in topics.items()]
    return asker.ask(DescribeLogDirsRequest(topics=asked))


WANTED: dict[str, Any] = {
    "a topic": lambda name: {name: [0, 1]},
    "one partition": lambda name: {name: [1]},
    "unknown partition": lambda name: {name: [0, 9, -1]},
    "unknown topic": lambda name: {name: [1], "never-there": [0]},
    "bad names": lambda name: {"a b": [0], "": [0]},
    "no partitions": lambda name: {name: []},
    "a partition twice": lambda name: {name: [0, 0]},
    "nothing": lambda name: {},
}


@DESCRIBE.each("of", WANTED, versions=(0, 2, 3, 4))
def described(asker: Asker, choose: Any) -> Any:
    return describe(asker, choose(filled(asker.side)))


@DESCRIBE.question("of all", versions=(0, 2, 3, 4))
def all_described(asker: Asker) -> Any:
    """Of the answer, the topic that both sides have had for longest."""
    known = filled(asker.side)
    answer = describe(asker, None)
    for directory in answer["results"]:
        directory["topics"] = [topic for topic in directory["topics"] if topic["name"] == known]
    return answer


PLACES: dict[str, tuple[str, int]] = {
    "a replica": ("", 0),
    "led elsewhere": ("", 1),
    "unknown partition": ("", 9),
    "unknown topic": ("never-there", 0),
    "a long name": ("x" * 230, 0),
    "bad name": ("a b", 0),
}
PATHS = {"no path": "", "unknown": "/no/such/directory", "relative": "relative", "there": None}
MOVES = {f"{place}, {path}": (*PLACES[place], PATHS[path]) for place in PLACES for path in PATHS}


@ALTER.each("moved", MOVES)
def moved(asker: Asker, move: tuple[str, int, str | None]) -> Any:
    topic, partition, path = move
    topics = [Moved(name=topic or filled(asker.side), partitions=[partition])]
    path = directory(asker.side) if path is None else path
    return asker.ask(AlterReplicaLogDirsRequest(dirs=[Dir(path=path, topics=topics)]))


@ALTER.question("nothing")
def nothing(asker: Asker) -> Any:
    return asker.ask(AlterReplicaLogDirsRequest(dirs=[]))


@ALTER.question("a partition to two places")
def twice(asker: Asker) -> Any:
    topics = [Moved(name=filled(asker.side), partitions=[0])]
    paths = (directory(asker.side), "/no/such/directory")
    return asker.ask(
        AlterReplicaLogDirsRequest(dirs=[Dir(path=path, topics=topics) for path in paths])
    )


@ALTER.question("where a new replica shall lie is kept for later")
def kept_for_later(asker: Asker) -> Any:
    topics = [Moved(name=asker.name(), partitions=[0])]
    path = directory(asker.side)
    asked = asker.ask(AlterReplicaLogDirsRequest(dirs=[Dir(path=path, topics=topics)]))
    name = asker.topic()
    request = DescribeLogDirsRequest(topics=[Topic(topic=name, partitions=[0])])
    return [asked, asker.side.ask(request, 4)]
