"""Reads, processes and writes: copies the records of one topic to another, exactly once.

    python -m urteil.harness.clients.transactions.copier SPEC.json

A poll's records, their copies and the group's new offsets are one transaction (KIP-447). A share of
the transactions (`aborts`) is aborted on purpose. After an abort or a failure the member
returns to the group's committed offsets. A copy without its offset, or an offset without its
copies, shows that the transaction was torn (`offsets_not_atomic`).
"""

from __future__ import annotations

import random
import time

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage, Writes
from urteil.harness.clients.libraries import CONFLUENT
from urteil.harness.clients.libraries.confluent_consumer import Journal, member_config
from urteil.harness.clients.libraries.member_epochs import member_epoch
from urteil.harness.clients.options import (
    CONSUMER,
    CopierOptions,
    MembershipOptions,
    OutcomeOptions,
    SendOptions,
    TransactionOptions,
    member_protocol,
)
from urteil.harness.clients.payload import decode
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.transactions.journaled_transactions import Transactions
from urteil.harness.clients.workload_kinds import copier_count
from urteil.harness.evidence.journal import Assigned, JournalWriter

BATCH = 20
POLL_S = RETRY_S = 0.2
ASK_S = 5.0
Slot = tuple[str, int]


class Copier:
    """A member of the copying group."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        source, sink = spec.topics[:2]
        self._run_id = spec.run
        self._stop = stop
        self._sink, self._partitions = sink.name, sink.partitions
        self._aborts = OutcomeOptions.of(spec.workload).aborts
        self._random = random.Random(spec.seed)
        self._transactions = Transactions(spec, journal)
        self._journal = Journal(spec, journal)
        self._has_epochs = member_protocol(spec.workload, spec.session) == CONSUMER
        self._kafka = Consumer(member_config(spec))
        self._pass = 0
        self._kafka.subscribe(
            [source.name],
            on_assign=lambda _, assigned: self._note("assigned", assigned),
            on_revoke=lambda _, revoked: self._note("revoked", revoked),
            on_lost=lambda _, revoked: self._note("lost", revoked),
        )

    def run(self) -> None:
        """Copy until the stop is requested."""
        while not self._stop.is_set():
            if self._transactions.ensure_ready():
                self._step()
            else:
                self._kafka.consume(0, 0)
                self._stop.wait(RETRY_S)
        self._kafka.close()

    def _step(self) -> None:
        invoke_ns = time.monotonic_ns()
        messages = self._kafka.consume(BATCH, POLL_S)
        valid = [message for message in messages if message.error() is None]
        if not valid:
            self._journal.poll(invoke_ns, messages)
            return
        txn = self._transactions.begin()
        slots = self._journal.poll(invoke_ns, messages, txn)
        if txn is None or self._copy(valid, slots) != "committed":
            self._return_to_committed()

    def _copy(self, messages: list[Message], slots: list[Slot]) -> str:
        for message in messages:
            source = decode(self._run_id, message.value(), message.key()).value_id
            partition = (message.partition() or 0) % self._partitions
            key = (message.key() or b"").decode()
            if not self._transactions.send(self._sink, partition, key, source):
                break
        positions = {slot: self._journal.position[slot] for slot in slots}
        self._transactions.offsets(self._kafka, positions)
        return self._transactions.end(commit=self._random.random() >= self._aborts)

    def _return_to_committed(self) -> None:
        """Seek to the committed offsets of the assigned partitions. Nothing is read before they are
        known."""
        while not self._stop.is_set():
            assigned = self._kafka.assignment()
            try:
                committed = self._kafka.committed(assigned, ASK_S) if assigned else []
                for position in committed:
                    self._seek(position)
                return
            except KafkaException:
                self._stop.wait(RETRY_S)

    def _seek(self, committed: TopicPartition) -> None:
        if committed.error is not None:
            raise KafkaException(committed.error)
        slot = (committed.topic, committed.partition)
        start = committed.offset
        if start < 0:
            start, _ = self._kafka.get_watermark_offsets(committed, ASK_S)
        self._kafka.seek(TopicPartition(*slot, start))
        self._pass += 1
        self._journal.passes[slot] = self._pass
        self._journal.position[slot] = start
        self._journal.event[slot] = "seek"

    def _note(self, event: str, partitions: list[TopicPartition]) -> None:
        slots = sorted((partition.topic, partition.partition) for partition in partitions)
        member = self._kafka.memberid() or None
        epoch = member_epoch(self._kafka) if self._has_epochs else None
        self._journal.write(Assigned(time.monotonic_ns(), event, None, member, slots, epoch))
        self._pass += 1
        for slot in slots:
            self._journal.position.pop(slot, None)
            if event == "assigned":
                self._journal.passes[slot] = self._pass
                self._journal.event[slot] = "rebalance"


def copy(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    Copier(spec, journal, stop).run()


KIND = ClientKind(
    name="copier",
    about="A group member that copies records to a second topic, and commits in transactions.",
    stage=Stage.COPIES,
    judged_by=("offsets_not_atomic",),
    prefix="x",
    count=lambda scenario: copier_count(scenario.workload),
    work=copy,
    options=(CopierOptions, OutcomeOptions, TransactionOptions, MembershipOptions, SendOptions),
    libraries=(CONFLUENT,),
    writes=Writes.IN_TRANSACTIONS,
    group=lambda spec: spec.workload.group,
    is_member=True,
)

if __name__ == "__main__":
    run_client(KIND)
