"""A client that lies: it sends batches whose CRC does not fit, and, to a topic with limits, some
that are too large or have too old or too new a time. A broker must refuse them all.

    python -m urteil.harness.clients.special.invalid_batches SPEC.json

No client library would send such a batch, so the request is packed here, byte by byte: Produce
version 3 (the first with batches of magic 2), one partition and one record a request. `options`:
`corrupt_batches` is how many to send, evenly over `corrupt_every_ms` (default 500) each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.spec import ClientSpec
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
"""Lies and their errors: CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP."""
LIMITS = {
    "large": "max.message.bytes",
    "old": "message.timestamp.before.max.ms",
    "new": "message.timestamp.after.max.ms",
}
EVERY_MS = 500


def corrupt_batch(key: bytes, value: bytes, timestamp_ms: int) -> bytes:
    """A batch of one record whose last byte was changed after the CRC was taken.

    The last byte of the value is padding: the record still names its send, and its own checksum
    shows the damage.
    """
    spoiled = bytearray(single_record_batch(key, value, timestamp_ms))
    spoiled[-2] ^= 0xFF
    return bytes(spoiled)


def lies(config: Mapping[str, str]) -> list[str]:
    """What a client can lie about to a topic with this configuration."""
    return ["crc", *(lie for lie, limit in LIMITS.items() if limit in config)]


def lying_batch(
    encoder: Encoder, op: int, key: str, partition: int, lie: str, limit: int
) -> tuple[bytes, int]:
    """A batch beyond the limit in bytes or ms, or with a wrong CRC, and its record's time in ms."""
    away_ms = {"old": -2 * limit, "new": 2 * limit}.get(lie, 0)
    timestamp_ms = time.time_ns() // 1_000_000 + away_ms
    value = encoder.encode(op, key.encode(), partition, timestamp_ms)
    batch = corrupt_batch if lie == "crc" else single_record_batch
    return batch(key.encode(), value, timestamp_ms), timestamp_ms


class Liar:
    """Sends lying batches and journals what came of each."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._spec = spec
        self._journal = journal
        self._configs = {topic.name: topic.config for topic in spec.topics}

    def send(self, op: int) -> None:
        """One batch to whoever leads its partition: brokers are asked in turn."""
        topic, partition = self._spec.partitions()[op % len(self._spec.partitions())]
        config, key = self._configs[topic], f"raw{partition}"
        told = lies(config)
        lie = told[op % len(told)]
        limit = int(config.get(LIMITS.get(lie, ""), "0"))
        value_bytes = limit if lie == "large" else self._spec.workload.value_bytes
        encoder = Encoder(self._spec.run, self._spec.client, value_bytes)
        batch, timestamp_ms = lying_batch(encoder, op, key, partition, lie, limit)
        frame = produce_request(op, topic, partition, batch, self._spec.workload.request_timeout_ms)
        self._journal.write(Send(op, time.monotonic_ns(), topic, partition, key, timestamp_ms))
        attempts, unknown = 0, ""
        for address in self._spec.bootstrap:
            attempts += 1
            try:
                error, offset = self._ask(address, frame, topic)
            except OSError as failure:
                unknown = unknown or type(failure).__name__
                continue
            if error not in NOT_HERE:
                certain = error == REFUSALS[lie] and not unknown
                self._note(op, partition, error, offset, attempts, unknown, certain=certain)
                return
        self._note(op, partition, NOT_LEADER_OR_FOLLOWER, -1, attempts, unknown or "NoLeader")

    def _ask(self, address: str, frame: bytes, topic: str) -> tuple[int, int]:
        wire = Connection(address, self._spec.workload.request_timeout_ms / 1000)
        try:
            return read_produce_response(wire.call(frame), topic)
        finally:
            wire.close()

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


def lie(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Send the batches one by one, then wait for the end."""
    options = spec.workload.options
    liar = Liar(spec, journal)
    for op in range(int(options.get("corrupt_batches", "0"))):
        if stop.asked():
            return
        liar.send(op)
        stop.wait(int(options.get("corrupt_every_ms", EVERY_MS)) / 1000)
    while not stop.asked():
        stop.wait(0.2)


if __name__ == "__main__":
    run_client(lie)
