"""A client that sends invalid batches: with a wrong CRC, and to a topic with limits also some that
are too large, too old or too new. A broker must reject all of them.

    python -m urteil.harness.clients.special.invalid_batches SPEC.json

No client library sends such a batch, so the request is packed byte by byte, with one partition and
one record. A batch that a broker accepted is a violation, whatever it answered.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from urteil.chaos.capabilities import RECORD_BATCHES
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage, Writes
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import Fail, Info, JournalWriter, Ok, Send
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.produce_requests import (
    NOT_HERE,
    NOT_LEADER_OR_FOLLOWER,
    produce_request,
    read_produce_response,
    single_record_batch,
)

REFUSALS = {"crc": 2, "large": 10, "old": 32, "new": 32}
"""Kinds of invalid batches and their errors: CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP.
"""
LIMITS = {
    "large": "max.message.bytes",
    "old": "message.timestamp.before.max.ms",
    "new": "message.timestamp.after.max.ms",
}


class InvalidBatchOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    corrupt_batches: Annotated[
        int, Meta(ge=0, le=1_000_000, description="The number of invalid batches.")
    ] = 0
    corrupt_every_ms: Annotated[
        int, Meta(ge=0, le=3_600_000, description="The time between two invalid batches.")
    ] = 500


def corrupt_batch(key: bytes, value: bytes, timestamp_ms: int) -> bytes:
    """A batch of one record whose last byte was changed after the CRC was computed.

    The last byte of the value is padding: the record still identifies its send, and its own
    checksum shows the damage.
    """
    spoiled = bytearray(single_record_batch(key, value, timestamp_ms))
    spoiled[-2] ^= 0xFF
    return bytes(spoiled)


def invalid_kinds(config: Mapping[str, str]) -> list[str]:
    """The kinds of invalid batches for a topic with this configuration."""
    return ["crc", *(kind for kind, limit in LIMITS.items() if limit in config)]


def invalid_batch(
    encoder: Encoder, op: int, key: str, partition: int, kind: str, limit: int
) -> tuple[bytes, int]:
    """A batch beyond the limit (in bytes or ms), or with a wrong CRC, and its record's timestamp in
    ms."""
    shift_ms = {"old": -2 * limit, "new": 2 * limit}.get(kind, 0)
    timestamp_ms = time.time_ns() // 1_000_000 + shift_ms
    value = encoder.encode(op, key.encode(), partition, timestamp_ms)
    batch = corrupt_batch if kind == "crc" else single_record_batch
    return batch(key.encode(), value, timestamp_ms), timestamp_ms


class InvalidBatchSender:
    """Sends invalid batches and journals the outcomes."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._spec = spec
        self._journal = journal
        self._configs = {topic.name: topic.config for topic in spec.topics}

    def send(self, op: int) -> None:
        """Send one batch to the brokers in turn until the leader of its partition responds."""
        topic, partition = self._spec.partitions()[op % len(self._spec.partitions())]
        config, key = self._configs[topic], f"raw{partition}"
        kinds = invalid_kinds(config)
        kind = kinds[op % len(kinds)]
        limit = int(config.get(LIMITS.get(kind, ""), "0"))
        value_bytes = limit if kind == "large" else self._spec.workload.value_bytes
        encoder = Encoder(self._spec.run, self._spec.client, value_bytes)
        batch, timestamp_ms = invalid_batch(encoder, op, key, partition, kind, limit)
        frame = produce_request(op, topic, partition, batch, self._spec.workload.request_timeout_ms)
        self._journal.write(Send(op, time.monotonic_ns(), topic, partition, key, timestamp_ms))
        attempts, unknown = 0, ""
        for address in self._spec.bootstrap:
            attempts += 1
            try:
                error, offset = self._request(address, frame, topic)
            except OSError as failure:
                unknown = unknown or type(failure).__name__
                continue
            if error not in NOT_HERE:
                certain = error == REFUSALS[kind] and not unknown
                self._note(op, partition, error, offset, attempts, unknown, certain=certain)
                return
        self._note(op, partition, NOT_LEADER_OR_FOLLOWER, -1, attempts, unknown or "NoLeader")

    def _request(self, address: str, frame: bytes, topic: str) -> tuple[int, int]:
        connection = Connection(address, self._spec.workload.request_timeout_ms / 1000)
        try:
            return read_produce_response(connection.call(frame), topic)
        finally:
            connection.close()

    def _note(
        self,
        op: int,
        partition: int,
        error: int,
        offset: int,
        attempts: int,
        unknown: str,
        *,
        certain: bool = False,
    ) -> None:
        outcome = Ok if error == 0 else Fail if certain else Info
        name = None if error == 0 else unknown or f"error {error}"
        self._journal.write(
            outcome(op, time.monotonic_ns(), name, attempts, bool(unknown), partition,
                    offset if error == 0 else None, None, None, None, None, None)
        )  # fmt: skip


def send_invalid_batches(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Send the batches one by one, then wait for the stop."""
    options = InvalidBatchOptions.of(spec.workload)
    sender = InvalidBatchSender(spec, journal)
    for op in range(options.corrupt_batches):
        if stop.is_set():
            return
        sender.send(op)
        stop.wait(options.corrupt_every_ms / 1000)
    stop.wait_until_set()


KIND = ClientKind(
    name="raw",
    about="Sends invalid batches, which a broker must reject.",
    needs=lambda _: (RECORD_BATCHES,),
    stage=Stage.LOAD,
    judged_by=("corrupt", "aborted_read"),
    prefix="raw",
    count=lambda scenario: int(InvalidBatchOptions.of(scenario.workload).corrupt_batches > 0),
    work=send_invalid_batches,
    options=(InvalidBatchOptions,),
    writes=Writes.PLAINLY,
)

if __name__ == "__main__":
    run_client(KIND)
