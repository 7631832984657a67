"""Reads the committed offsets of a group again and again, from outside the group (OffsetFetch).

    python -m urteil.harness.clients.offsets.committed_offset_reader SPEC.json

One request covers all partitions. A read must show the last acknowledged commit or a later one
(`commit_register`, `commit_went_back`).
"""

from __future__ import annotations

import time
from typing import Annotated, Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, UnknownTopicOrPartitionError
from kafka.structs import OffsetAndMetadata
from msgspec import Meta

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kafka_python_fixes import fix_connections
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.spec import ClientSpec, consumer_config
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.workload_kinds import committer_count, copier_count, member_count
from urteil.harness.evidence.journal import CommitRead, JournalWriter
from urteil.harness.scenario import Scenario

EPOCHS = 1_009
EPOCHS_SINCE = (2, 1)
"""The first release whose OffsetFetch returns leader epochs (KIP-320)."""
NO_EPOCH = -1
TIMEOUT_MS = 5_000


class OffsetReadOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    offset_reads_ms: Annotated[
        int, Meta(ge=1, le=60_000, description="The time between two reads of the group's offsets.")
    ] = 250


class TagOptions(WorkloadOptions, frozen=True):
    """Options of clients that commit offsets with metadata, and of their readers."""

    commits_epochs: Annotated[
        bool,
        Meta(
            description="Commits carry leader epochs. Brokers that store offsets as Kafka 2.0 did "
            "(`inter.broker.protocol.version`) keep none."
        ),
    ] = True


class CommittedOffsetReader:
    """Reads committed offsets through a consumer and journals them. With `tags`, all commits carry
    the metadata and epoch of `tagged_offset`, which the reader compares."""

    def __init__(
        self, kafka: KafkaConsumer, journal: JournalWriter, *, tags: TagOptions | None = None
    ) -> None:
        self._coordinator = kafka._coordinator
        self._journal = journal
        self._tags = tags if kafka.config["api_version"] >= EPOCHS_SINCE else None
        handle = self._coordinator._handle_offset_fetch_response
        self._coordinator._handle_offset_fetch_response = lambda response: handle(
            _check_partitions(response)
        )

    def read(
        self, partitions: list[TopicPartition], generation: int | None, member_id: str | None
    ) -> None:
        """One OffsetFetch for all `partitions`; kafka-python retries it."""
        invoke_ns = time.monotonic_ns()
        outcome, error, offsets = "ok", None, {}
        try:
            offsets = self._coordinator.fetch_committed_offsets(partitions, timeout_ms=TIMEOUT_MS)
        except KafkaError as failure:
            outcome, error = "info", type(failure).__name__
        complete_ns = time.monotonic_ns()
        for tp in partitions:
            committed = offsets.get(tp)
            offset = None if committed is None else committed.offset
            intact = (
                committed == tagged_offset(committed.offset, self._tags)
                if committed is not None and self._tags is not None
                else None
            )
            self._journal.write(
                CommitRead(invoke_ns, complete_ns, outcome, error, generation, member_id,
                           tp.topic, tp.partition, offset, intact)
            )  # fmt: skip


def tagged_offset(offset: int, tags: TagOptions) -> OffsetAndMetadata:
    """An offset with metadata that depend on it, and with such a leader epoch if `tags` ask so."""
    epoch = offset % EPOCHS if tags.commits_epochs else NO_EPOCH
    return OffsetAndMetadata(offset, f"position {offset}", epoch)


def _check_partitions(response: Any) -> Any:
    """The response. UnknownTopicOrPartitionError if it has this error for a partition: kafka-python
    would omit the partition as if nothing were committed."""
    groups = response.groups if response.API_VERSION >= 8 else [response]
    for group in groups:
        for topic in group.topics:
            for partition in topic.partitions:
                if partition.error_code == UnknownTopicOrPartitionError.errno:
                    raise UnknownTopicOrPartitionError(topic.name)
    return response


def read_positions(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Read until the stop is requested."""
    kafka = KafkaConsumer(**consumer_config(spec))
    fix_connections(kafka._manager)
    tags = TagOptions.of(spec.workload) if spec.workload.kind == "commits" else None
    reader = CommittedOffsetReader(kafka, journal, tags=tags)
    partitions = [TopicPartition(*partition) for partition in spec.partitions()]
    every_s = OffsetReadOptions.of(spec.workload).offset_reads_ms / 1000
    while not stop.is_set():
        reader.read(partitions, None, None)
        stop.wait(every_s)
    kafka.close(autocommit=False, timeout_ms=2_000)


def _count(scenario: Scenario) -> int:
    """One if clients commit offsets of the group."""
    load = scenario.workload
    return int(any((member_count(load), copier_count(load), committer_count(load))))


KIND = ClientKind(
    name="offsets",
    about="Reads the group's committed offsets again and again, from outside the group.",
    stage=Stage.READS,
    judged_by=("commit_went_back", "commit_register"),
    prefix="o",
    count=_count,
    work=read_positions,
    options=(OffsetReadOptions, TagOptions),
    group=lambda spec: spec.workload.group,
)

if __name__ == "__main__":
    run_client(KIND)
