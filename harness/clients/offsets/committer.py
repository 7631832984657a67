"""Commits positions outside of any generation, as fast as its rate asks, and reads them back.

    python -m urteil.harness.clients.offsets.committer SPEC.json

A group without members takes commits from anybody. Committers move one of two groups, each by
numbers of its own, so that an answer tells whose commit it shows, and each commit is of up to three
partitions. The positions belong to the last topic, to which nobody writes: they are registers, and
no record stands below them.
"""

from __future__ import annotations

import random
import time

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.consumers.group_consumer import COMMIT_TIMEOUT_MS, CommitAttempts
from urteil.harness.clients.kafka_python_fixes import back_off
from urteil.harness.clients.offsets.committed_offset_reader import PositionReader, noted
from urteil.harness.clients.spec import ClientSpec, consumer_config
from urteil.harness.evidence.journal import Commit, CommitEntry, Committed, JournalWriter

CLIENTS = 1_000
READS = 0.3
AT_ONCE = 3
"""Partitions of one commit, at most."""
PER_S = "20"


class Committer:
    """One client that commits, and now and then asks."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._journal = journal
        self._number = spec.number + 50 * (spec.session - 1)
        topic = spec.topics[-1]
        self._slots = [TopicPartition(topic.name, p) for p in range(topic.partitions)]
        self._random = random.Random(spec.seed)
        self._kafka = KafkaConsumer(**consumer_config(spec))
        back_off(self._kafka._manager)
        self._attempts = CommitAttempts(self._kafka)
        self._positions = PositionReader(self._kafka, journal, are_noted=True)
        self._commits = 0

    def step(self) -> None:
        """One commit, or one question."""
        if self._random.random() < READS:
            self._positions.read(self._slots, None, None)
        else:
            count = self._random.randint(1, min(AT_ONCE, len(self._slots)))
            self._commit(self._random.sample(self._slots, count))

    def close(self) -> None:
        self._kafka.close(autocommit=False, timeout_ms=COMMIT_TIMEOUT_MS)

    def _commit(self, slots: list[TopicPartition]) -> None:
        """A position that no other commit of the run has."""
        self._commits += 1
        offset = self._commits * CLIENTS + self._number
        entries = [CommitEntry(slot.topic, slot.partition, offset, offset) for slot in slots]
        self._journal.write(Commit(self._commits, time.monotonic_ns(), None, None, entries))
        self._attempts.count = 0
        outcome, error_name = "ok", None
        try:
            self._kafka.commit(dict.fromkeys(slots, noted(offset)), timeout_ms=COMMIT_TIMEOUT_MS)
        except KafkaError as error:
            outcome, error_name = self._attempts.outcome(error), type(error).__name__
        else:
            error_name = self._attempts.told()
        self._journal.write(Committed(self._commits, time.monotonic_ns(), outcome, error_name))


def commit(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Until the end is asked for."""
    committer = Committer(spec, journal)
    every_s = 1 / float(spec.workload.options.get("commits_per_s", PER_S))
    while not stop.asked():
        committer.step()
        stop.wait(every_s)
    committer.close()


if __name__ == "__main__":
    run_client(commit)
