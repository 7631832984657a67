"""Asks again and again where a group stands: OffsetFetch, from outside the group.

    python -m urteil.harness.clients.offsets.committed_offset_reader SPEC.json

Every partition is asked about in one request, every `offset_reads_ms` (250).
"""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, UnknownTopicOrPartitionError
from kafka.structs import OffsetAndMetadata

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.kafka_python_fixes import back_off
from urteil.harness.clients.spec import ClientSpec, consumer_config
from urteil.harness.evidence.journal import CommitRead, JournalWriter

EVERY_MS = 250
EPOCHS = 1_009
EPOCHS_SINCE = (2, 1)
"""The release whose OffsetFetch tells leader epochs (KIP-320)."""
TIMEOUT_MS = 5_000


class PositionReader:
    """Reads committed positions through a consumer and journals what came back. `are_noted`: all
    of them were committed as `noted` says."""

    def __init__(
        self, kafka: KafkaConsumer, journal: JournalWriter, *, are_noted: bool = False
    ) -> None:
        self._coordinator = kafka._coordinator
        self._journal = journal
        self._are_noted = are_noted and kafka.config["api_version"] >= EPOCHS_SINCE
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
            told = found.get(tp)
            offset = None if told is None else told.offset
            intact = told == noted(told.offset) if told is not None and self._are_noted else None
            self._journal.write(
                CommitRead(invoke_ns, complete_ns, outcome, error, generation, member_id,
                           tp.topic, tp.partition, offset, intact)
            )  # fmt: skip


def noted(offset: int) -> OffsetAndMetadata:
    """A position with a text and a leader epoch that are its own."""
    return OffsetAndMetadata(offset, f"position {offset}", offset % EPOCHS)


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
    reader = PositionReader(kafka, journal, are_noted=spec.workload.kind == "commits")
    partitions = [TopicPartition(*one) for one in spec.partitions()]
    every_s = int(spec.workload.options.get("offset_reads_ms", str(EVERY_MS))) / 1000
    while not stop.asked():
        reader.read(partitions, None, None)
        stop.wait(every_s)
    kafka.close(autocommit=False, timeout_ms=2_000)


if __name__ == "__main__":
    run_client(read_positions)
