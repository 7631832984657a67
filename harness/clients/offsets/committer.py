"""Commits offsets outside of any generation, at a fixed rate, and reads them back.

    python -m urteil.harness.clients.offsets.committer SPEC.json

A group without members accepts commits of any client. Committers commit for one of two groups with
numbers of their own, so that a read identifies its commit. Each commit has up to three partitions.
The offsets belong to the last topic, which has no records: they serve as registers. Each read must
show the commit that some order of all commits puts last (`commit_register`).
"""

from __future__ import annotations

import random
import time
from typing import Annotated

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from msgspec import Meta

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.consumers.group_consumer import COMMIT_TIMEOUT_MS, CommitAttempts
from urteil.harness.clients.kafka_python_fixes import fix_connections
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.offsets.committed_offset_reader import (
    CommittedOffsetReader,
    TagOptions,
    tagged_offset,
)
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.spec import ClientSpec, consumer_config
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.workload_kinds import committer_count
from urteil.harness.evidence.journal import Commit, CommitEntry, Committed, JournalWriter

CLIENTS = 1_000
READS = 0.3
MOST_PARTITIONS = 3
"""Maximal number of partitions of one commit."""
SECOND = "second"
"""The suffix of the second group. With the five partitions of the lab's offsets topic, both groups
have the same coordinator."""


class CommitOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    commits_per_s: Annotated[
        float, Meta(ge=0.001, le=100_000, description="Commits per second of each committer.")
    ] = 20.0


def group_by_turn(spec: ClientSpec) -> str:
    """The consumer group: every second committer uses the second one."""
    first = spec.workload.group
    return first if spec.number % 2 else f"{first}-{SECOND}"


class Committer:
    """A client that commits, and reads now and then."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._journal = journal
        self._number = spec.number + 50 * (spec.session - 1)
        topic = spec.topics[-1]
        self._slots = [TopicPartition(topic.name, p) for p in range(topic.partitions)]
        self._random = random.Random(spec.seed)
        self._kafka = KafkaConsumer(**consumer_config(spec))
        fix_connections(self._kafka._manager)
        self._attempts = CommitAttempts(self._kafka)
        self._tags = TagOptions.of(spec.workload)
        self._positions = CommittedOffsetReader(self._kafka, journal, tags=self._tags)
        self._commits = 0

    def step(self) -> None:
        """One commit or one read."""
        if self._random.random() < READS:
            self._positions.read(self._slots, None, None)
        else:
            count = self._random.randint(1, min(MOST_PARTITIONS, len(self._slots)))
            self._commit(self._random.sample(self._slots, count))

    def close(self) -> None:
        self._kafka.close(autocommit=False, timeout_ms=COMMIT_TIMEOUT_MS)

    def _commit(self, slots: list[TopicPartition]) -> None:
        """Commit an offset that no other commit of the run has."""
        self._commits += 1
        offset = self._commits * CLIENTS + self._number
        entries = [CommitEntry(slot.topic, slot.partition, offset, offset) for slot in slots]
        self._journal.write(Commit(self._commits, time.monotonic_ns(), None, None, entries))
        self._attempts.count = 0
        outcome, error_name = "ok", None
        try:
            self._kafka.commit(
                dict.fromkeys(slots, tagged_offset(offset, self._tags)),
                timeout_ms=COMMIT_TIMEOUT_MS,
            )
        except KafkaError as error:
            outcome, error_name = self._attempts.outcome(error), type(error).__name__
        else:
            error_name = self._attempts.repetition_note()
        self._journal.write(Committed(self._commits, time.monotonic_ns(), outcome, error_name))


def commit(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Commit and read until the stop is requested."""
    committer = Committer(spec, journal)
    every_s = 1 / CommitOptions.of(spec.workload).commits_per_s
    while not stop.is_set():
        committer.step()
        stop.wait(every_s)
    committer.close()


KIND = ClientKind(
    name="committer",
    about="Commits numbered offsets of a group without members, and reads them back.",
    stage=Stage.READS,
    judged_by=("commit_register",),
    prefix="k",
    count=lambda scenario: committer_count(scenario.workload),
    work=commit,
    options=(CommitOptions, TagOptions),
    group=group_by_turn,
)

if __name__ == "__main__":
    run_client(KIND)
