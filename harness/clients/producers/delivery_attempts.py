"""Records each attempt of a KafkaProducer to deliver a batch, and derives the outcome of its
records.

kafka-python retries internally and reports only the last error. Whether a record was certainly not
written depends on every attempt. So each batch that is drained for a request is counted, and each
response that rejected it. Draining counts, not sending: `_send_producer_data` drains first, then
expires batches, and still sends what it drained. The module patches the sender of kafka-python 3,
whose version is pinned; another version without these functions fails at once.
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
        19,  # NOT_ENOUGH_REPLICAS: checked before the append
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
"""Errors of a leader that appended nothing. NOT_LEADER_OR_FOLLOWER is not among them: the leader
may lose the partition between the append and the response (KAFKA-13574)."""


@dataclass(slots=True)
class Attempts:
    """The attempts for one batch. `sent` counts how often it was drained, `refused` the certain
    rejections among them.

    Producer id, epoch and base sequence are those of the last request; `node` responded last.
    """

    sent: int = 0
    refused: int = 0
    node: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    pending: int = 0

    def has_certainly_failed(self) -> bool:
        """Whether nothing of the batch can have been written."""
        return self.sent == self.refused


class AttemptRecorder:
    """The attempts of all incomplete batches of a producer.

    The sender completes the records of a batch one by one; their acknowledgements are journaled
    together.
    """

    def __init__(self, producer: KafkaProducer, journal: JournalWriter) -> None:
        self._by_result: dict[Any, Attempts] = {}
        self._journal = journal
        self._completing: int | None = None
        self._batch_acks: list[Ok] = []
        sender = producer._sender
        self._drain = sender._accumulator.drain
        self._handle = sender._handle_produce_response
        self._complete = sender._complete_batch
        sender._accumulator.drain = self._on_drain
        sender._handle_produce_response = self._on_response
        sender._complete_batch = self._on_partition_response

    def pop_attempts(self, future: Any) -> tuple[Attempts, int]:
        """The attempts of a record's batch and its index in it. Called once for each record, from
        the callback of its future. A batch that was never sent has empty `Attempts`."""
        result = future._produce_future
        attempts = self._by_result.get(result)
        if attempts is None:
            return Attempts(), int(future.args[0] or 0)
        attempts.pending -= 1
        if not attempts.pending:
            self._by_result.pop(result, None)
        return attempts, int(future.args[0])

    def note(self, ok: Ok) -> None:
        """Journal an acknowledgement: with those of its batch, or at once if the sending thread
        runs the callback."""
        if self._completing == threading.get_ident():
            self._batch_acks.append(ok)
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
        attempts.pending = batch.record_count
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

    def _on_partition_response(self, batch: Any, answer: Any) -> None:
        attempts = self._by_result.get(batch.produce_future)
        if attempts is not None and answer.error_code and for_code(answer.error_code) in REFUSALS:
            attempts.refused += 1
        self._completing = threading.get_ident()
        try:
            self._complete(batch, answer)
        finally:
            self._completing = None
            self._journal.write_all(self._batch_acks)
            self._batch_acks.clear()
