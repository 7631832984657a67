"""Asks again and again where a group stands: OffsetFetch, from outside the group.

    python -m urteil.harness.workload.offset_reader SPEC.json

Every partition is asked about in one request, every `offset_reads_ms` (250).
"""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from urteil.harness.history.journal import CommitRead, JournalWriter
from urteil.harness.workload.client import Stop, run_client
from urteil.harness.workload.repairs import back_off
from urteil.harness.workload.spec import ClientSpec, consumer_config

EVERY_MS = 250
TIMEOUT_MS = 5_000


class PositionReader:
    """Reads committed positions through a consumer and journals what came back."""

    def __init__(self, kafka: KafkaConsumer, journal: JournalWriter) -> None:
        self._coordinator = kafka._coordinator
        self._journal = journal
        handle = self._coordinator._handle_offset_fetch_response
        self._coordinator._handle_offset_fetch_response = lambda got: handle(_whole(got))

    def read(
        self, partitions: list[TopicPartition], generation: int | None, member_id: str | None
    ) -> None:
        """One OffsetFetch of all `partitions`; kafka-python repeats it inside."""
        invoke_ns = time.monotonic_ns()
        outcome, error, found = "ok", None, {}
        try:
            found = self._coordinator.fetch_committed_offsets(partitions, timeout_ms=TIMEOUT_MS)
        except KafkaError as failure:
            outcome, error = "info", type(failure).__name__
        complete_ns = time.monotonic_ns()
        for tp in partitions:
            offset = found[tp].offset if tp in found else None
            self._journal.write(
                CommitRead(invoke_ns, complete_ns, outcome, error, generation, member_id,
                           tp.topic, tp.partition, offset)
            )  # fmt: skip


def _whole(response: Any) -> Any:
    """The response, unless it says of a partition that there is none: kafka-python would leave
    that one out, as if nothing were committed."""
    groups = response.groups if response.API_VERSION >= 8 else [response]
    for group in groups:
        for topic in group.topics:
            for partition in topic.partitions:
                if partition.error_code == UnknownTopicOrPartitionError.errno:
                    raise UnknownTopicOrPartitionError(topic.name)
    return response


def read_positions(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Ask until the end is asked for."""
    kafka = KafkaConsumer(**consumer_config(spec))
    back_off(kafka._manager)
    reader = PositionReader(kafka, journal)
    partitions = [TopicPartition(*one) for one in spec.partitions()]
    every_s = int(spec.workload.options.get("offset_reads_ms", str(EVERY_MS))) / 1000
    while not stop.asked():
        reader.read(partitions, None, None)
        stop.wait(every_s)
    kafka.close(autocommit=False, timeout_ms=2_000)


if __name__ == "__main__":
    run_client(read_positions)
