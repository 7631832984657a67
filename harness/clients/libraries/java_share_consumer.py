"""The share consumer of the Java client, with the methods of confluent-kafka's ShareConsumer."""

from __future__ import annotations

import queue
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import AcknowledgeType, KafkaException, TopicPartition

from urteil.harness.clients.libraries.jvm import Jvm, error_of
from urteil.harness.clients.libraries.verifiable_tool import connection_config
from urteil.harness.clients.options import GroupOptions, ShareOptions
from urteil.harness.clients.spec import ClientSpec


def share_config(spec: ClientSpec) -> dict[str, object]:
    """The settings of a member by Apache Kafka's names."""
    load = spec.workload
    most = GroupOptions.of(load).max_poll_records
    config = connection_config(spec) | {
        "bootstrap.servers": ",".join(spec.bootstrap),
        "group.id": load.group,
        "share.acknowledgement.mode": "explicit",
        "share.acquire.mode": ShareOptions.of(load).acquire_mode,
    }
    return config if most is None else config | {"max.poll.records": most}


@dataclass(frozen=True, slots=True)
class JavaRecord:
    """A record with the methods of confluent-kafka's Message."""

    words: list[str]

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return self.words[0]

    def partition(self) -> int:
        return int(self.words[1])

    def offset(self) -> int:
        return int(self.words[2])

    def leader_epoch(self) -> int | None:
        return _number(self.words[3])

    def timestamp(self) -> tuple[int, int]:
        """Type and ms. librdkafka numbers the types from 1 on."""
        return int(self.words[5]) + 1, int(self.words[4])

    def delivery_count(self) -> int | None:
        return _number(self.words[6])

    def key(self) -> bytes | None:
        return _bytes(self.words[7])

    def value(self) -> bytes | None:
        return _bytes(self.words[8])

    def headers(self) -> list[tuple[str, bytes | None]]:
        pairs = (pair.partition(":") for pair in self.words[9].removeprefix("=").split(",") if pair)
        return [((_bytes(name) or b"").decode(), _bytes(value)) for name, _, value in pairs]


class JavaShareConsumer:
    """A member in a JVM of its own. Acknowledgements are those of `commit_sync`."""

    def __init__(self, spec: ClientSpec) -> None:
        file = Path(spec.journal).with_suffix(".properties")
        settings = share_config(spec).items()
        file.write_text("".join(f"{name}={value}\n" for name, value in settings))
        topics = ",".join(topic.name for topic in spec.topics)
        self._jvm = Jvm("ShareMember", [str(file), topics])

    def poll(self, wait_s: float) -> list[JavaRecord]:
        self._jvm.call("poll", int(wait_s * 1000))
        return [JavaRecord(line.split(" ")) for line in self._reports()]

    def acknowledge(self, record: JavaRecord, kind: AcknowledgeType) -> None:
        place = (record.topic(), record.partition(), record.offset())
        self._jvm.call("acknowledge", *place, kind.name)

    def commit_sync(self, wait_s: float) -> dict[TopicPartition, KafkaException | None]:
        self._jvm.call("commit", int(wait_s * 1000))
        results = (line.split(" ", 2) for line in self._reports())
        return {
            TopicPartition(topic, int(partition)): _failure(outcome)
            for topic, partition, outcome in results
        }

    def close(self) -> None:
        self._jvm.call("close")

    def _reports(self) -> Iterator[str]:
        """What the last command reported."""
        while True:
            try:
                yield self._jvm.reports.get_nowait()
            except queue.Empty:
                return


def _failure(outcome: str) -> KafkaException | None:
    error = error_of(outcome)
    return None if error is None else KafkaException(error)


def _number(text: str) -> int | None:
    return None if text == "-1" else int(text)


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else b64decode(text[1:])
