"""What a KafkaProducer knows of each attempt to deliver a batch, and what follows for its records.

kafka-python retries inside and reports only the last error. Whether a record certainly was not
written depends on every attempt: so each batch that is drained for a request is noted, and each
answer that refused it. Draining counts, not sending: a batch may expire and be sent all the same,
for `_send_producer_data` drains first, expires then and sends what it drained. This reaches into
kafka-python 3's sender, which is pinned; a version that has moved these functions fails at once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer
from kafka.errors import for_code

from urteil.harness.evidence.journal import JournalWriter, Ok

REFUSALS = frozenset(
    for_code(code)
    for code in (
        2,  # CORRUPT_MESSAGE
        10,  # MESSAGE_TOO_LARGE
        17,  # INVALID_TOPIC_EXCEPTION
        18,  # RECORD_LIST_TOO_LARGE
        19,  # NOT_ENOUGH_REPLICAS: asked before the append
        21,  # INVALID_REQUIRED_ACKS
        29,  # TOPIC_AUTHORIZATION_FAILED
        31,  # CLUSTER_AUTHORIZATION_FAILED
        32,  # INVALID_TIMESTAMP
        35,  # UNSUPPORTED_VERSION
        43,  # UNSUPPORTED_FOR_MESSAGE_FORMAT
        44,  # POLICY_VIOLATION
        45,  # OUT_OF_ORDER_SEQUENCE_NUMBER
        47,  # INVALID_PRODUCER_EPOCH
        59,  # UNKNOWN_PRODUCER_ID
        76,  # UNSUPPORTED_COMPRESSION_TYPE
        87,  # INVALID_RECORD
    )
)
"""Answers of a leader that appended nothing. NOT_LEADER_OR_FOLLOWER is none of them: the leader
may lose the partition between its append and its answer (KAFKA-13574)."""


@dataclass(slots=True)
class Attempts:
    """The deliveries of one batch. `sent` counts how often it was taken to be sent, `refused` the
    certain refusals among them.

    The producer id, epoch and base sequence are those of the last request; `node` answered last.
    """

    sent: int = 0
    refused: int = 0
    node: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    left: int = 0

    def certainly_failed(self) -> bool:
        """True when nothing that was sent can have been written."""
        return self.sent == self.refused


class AttemptWatch:
    """The attempts of all batches that a producer has not completed yet.

    The acknowledgements of a batch, which its sender completes one after the other, are journaled
    together.
    """

    def __init__(self, producer: KafkaProducer, journal: JournalWriter) -> None:
        self._by_result: dict[Any, Attempts] = {}
        self._journal = journal
        self._completing: int | None = None
        self._together: list[Ok] = []
        sender = producer._sender
        self._drain = sender._accumulator.drain
        self._handle = sender._handle_produce_response
        self._complete = sender._complete_batch
        sender._accumulator.drain = self._on_drain
        sender._handle_produce_response = self._on_response
        sender._complete_batch = self._on_answer

    def take(self, future: Any) -> tuple[Attempts, int]:
        """Attempts and index in its batch of a record whose future is being completed.

        Called once a record, from the future's callback. A batch that was never sent has an
        empty `Attempts`.
        """
        result = future._produce_future
        attempts = self._by_result.get(result)
        if attempts is None:
            return Attempts(), int(future.args[0] or 0)
        attempts.left -= 1
        if not attempts.left:
            self._by_result.pop(result, None)
        return attempts, int(future.args[0])

    def note(self, ok: Ok) -> None:
        """Journal an acknowledgement: with those of its batch, or at once where the record was
        complete before anybody asked, so that the thread which sent it is called."""
        if self._completing == threading.get_ident():
            self._together.append(ok)
        else:
            self._journal.write(ok)

    def _on_drain(self, *args: Any, **kwargs: Any) -> dict[int, list[Any]]:
        drained: dict[int, list[Any]] = self._drain(*args, **kwargs)
        for batches in drained.values():
            for batch in batches:
                self._note_request(batch)
        return drained

    def _note_request(self, batch: Any) -> None:
        attempts = self._by_result.setdefault(batch.produce_future, Attempts())
        attempts.sent += 1
        attempts.left = batch.record_count
        if batch.has_sequence:
            attempts.producer_id = batch.producer_id
            attempts.producer_epoch = batch.producer_epoch
            attempts.base_sequence = batch.base_sequence

    def _on_response(self, node_id: int, send_time: float, batches: list[Any], answer: Any) -> None:
        for batch in batches:
            attempts = self._by_result.get(batch.produce_future)
            if attempts is not None and answer:
                attempts.node = node_id
        self._handle(node_id, send_time, batches, answer)

    def _on_answer(self, batch: Any, answer: Any) -> None:
        attempts = self._by_result.get(batch.produce_future)
        if attempts is not None and answer.error_code and for_code(answer.error_code) in REFUSALS:
            attempts.refused += 1
        self._completing = threading.get_ident()
        try:
            self._complete(batch, answer)
        finally:
            self._completing = None
            self._journal.write_all(self._together)
            self._together.clear()
