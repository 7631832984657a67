"""Acts on topics and their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.capabilities import PARTITION_GROWTH
from urteil.chaos.topology import node_id
from urteil.chaos.waiting import retry
from urteil.harness.clients.kafka_python_fixes import retry_missing_partitions
from urteil.harness.cluster.administration import admin_znodes
from urteil.harness.cluster.administration.admin_requests import (
    DEADLINE_S,
    POLL_S,
    REQUEST_TIMEOUT_MS,
    AdminRequests,
    is_transient,
)


class TopicActs(AdminRequests):
    """Topics are created, filled, extended, emptied and deleted."""

    def topic_id(self, topic: str) -> str | None:
        return self._state.topic_id(topic)

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str] | None = None,
    ) -> str:
        settings = {
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": dict(config or {}),
        }
        with self._acts.act("create", topic) as after:
            self._send_until(
                lambda admin: admin.create_topics({topic: settings}),
                lambda: self._has_leaders(topic),
            )
            topic_id = self._state.topic_id(topic) or ""
            after.update(settings, topic_id=topic_id)
        return topic_id

    def delete_topic(self, topic: str, *, wait: bool = True) -> None:
        before = {"topic_id": self._state.topic_id(topic)}
        with self._acts.act("delete", topic, before):
            self._send_until(
                lambda admin: admin.delete_topics([topic]),
                lambda: (
                    self._state.is_deleted(topic)
                    or (not wait and self._state.is_being_deleted(topic))
                ),
            )

    def fill(self, topic: str, records: int) -> int:
        producer = KafkaProducer(
            bootstrap_servers=list(self._bootstrap()),
            acks="all",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=int(DEADLINE_S * 1000),
        )
        try:
            futures = [producer.send(topic, b"%s %d" % (topic.encode(), n)) for n in range(records)]
            for future in futures:
                future.get(timeout=DEADLINE_S)
        except KafkaError as error:
            raise ActFailed(
                f"{topic} accepts no records: {type(error).__name__}: {error}"
            ) from error
        finally:
            producer.close()
        return len(futures)

    def record_count(self, topic: str) -> int:
        return sum(end - start for start, end in self.offsets(topic).values())

    def offsets(self, topic: str) -> dict[int, tuple[int, int]]:
        slots = [TopicPartition(topic, replica) for replica in self.replicas(topic)]
        consumer = KafkaConsumer(
            bootstrap_servers=list(self._bootstrap()), request_timeout_ms=REQUEST_TIMEOUT_MS
        )
        retry_missing_partitions(consumer._fetcher)

        def read() -> dict[int, tuple[int, int]]:
            begins, ends = consumer.beginning_offsets(slots), consumer.end_offsets(slots)
            return {slot.partition: (begins[slot], ends[slot]) for slot in slots}

        try:
            return retry(read, KafkaError, is_transient, deadline_s=DEADLINE_S, poll_s=POLL_S)
        except KafkaError as error:
            raise ActFailed(f"{topic} returns no offsets: {type(error).__name__}") from error
        finally:
            consumer.close()

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        offsets = {TopicPartition(topic, partition): offset for partition, offset in before.items()}
        with self._acts.act("delete records", topic) as after:
            after["offsets"] = {str(partition): offset for partition, offset in before.items()}
            answers = self._request(lambda admin: admin.delete_records(offsets))
            starts = {
                slot.partition: int(answer["low_watermark"]) for slot, answer in answers.items()
            }
            after["low_watermarks"] = {
                str(partition): offset for partition, offset in starts.items()
            }
        return starts

    def add_partitions(self, topic: str, total: int) -> None:
        before = {"partitions": len(self.replicas(topic))}
        with self._acts.act("add partitions", topic, before) as after:
            after["partitions"] = total
            self._send_until(
                lambda admin: self._create_partitions(admin, topic, total),
                lambda: len(self.replicas(topic)) == total and self._has_leaders(topic),
            )

    def _create_partitions(self, admin: Any, topic: str, total: int) -> None:
        if not self._lacks(PARTITION_GROWTH):
            admin.create_partitions({topic: total})
        elif len(self.replicas(topic)) < total:
            brokers = [node_id(node) for node in self._state.registered_brokers()]
            admin_znodes.write_partitions(self._state.client, topic, total, brokers)
