"""The value of a record: it identifies its send and detects every damage.

    magic 4 | crc32c 4 | partition 4 | sequence 8 | time 8 | run length 1 | client length 1 | run |
    client | padding derived from the sequence

The checksum covers all that follows it (including the intended partition and the padding), the key
and the headers. The time is the record's timestamp in ms, unless the broker sets that
(LogAppendTime). `value_id` is `run/client/sequence`, unique in a run.

A tombstone has no value: its payload, without padding, is in a header of its own (`TAG`), and the
checksum covers the key and the other headers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from crc32c import crc32c

from urteil.harness.clients.libraries.verifiable_values import sender_of

Headers = Sequence[tuple[str, bytes | None]]

LOG_APPEND_TIME = 1

FOREIGN = "foreign"
"""The `value_id` of a payload of another run."""

TAG = "urteil"
"""The header that holds the payload of a tombstone."""

COPY = "copy/"
"""The prefix of the `value_id` of a record that an application copied: it is not a send of the lab.
"""

_MAGIC = b"UrT2"
_HEAD = struct.Struct(">4sIiQqBB")
_CHECKED_FROM = 8
_PATTERN = bytes(range(256)) * 2


@dataclass(frozen=True, slots=True)
class Payload:
    """A decoded value.

    `value_id` is None if the value is not a payload (or too damaged to say), `FOREIGN` if another
    run wrote it. `intact` means that the checksum over value, key, headers and intended
    partition holds, and that the record has the timestamp that it was sent with.
    """

    value_id: str | None
    intact: bool
    partition: int | None = None
    client: str | None = None
    sequence: int | None = None


_UNREADABLE = Payload(None, False)


class Encoder:
    """Builds the values of one client. A value is never shorter than its header."""

    def __init__(self, run: str, client: str, value_bytes: int) -> None:
        self._prefix = f"{run}/{client}/"
        self._names = run.encode() + client.encode()
        self._lengths = (len(run.encode()), len(client.encode()))
        self._padding = max(0, value_bytes - _HEAD.size - len(self._names))

    def tombstone(
        self, sequence: int, key: bytes, partition: int, timestamp_ms: int
    ) -> list[tuple[str, bytes]]:
        """The headers of a tombstone, which identify the send in place of a value."""
        return [(TAG, self._payload(sequence, key, partition, timestamp_ms, (), b""))]

    def value_id(self, sequence: int) -> str:
        return f"{self._prefix}{sequence}"

    def encode(
        self,
        sequence: int,
        key: bytes | None,
        partition: int,
        timestamp_ms: int,
        headers: Headers = (),
    ) -> bytes:
        """The value of a record with this key, timestamp and headers."""
        padding = _pad(sequence, self._padding)
        return self._payload(sequence, key, partition, timestamp_ms, headers, padding)

    def _payload(
        self,
        sequence: int,
        key: bytes | None,
        partition: int,
        timestamp_ms: int,
        headers: Headers,
        padding: bytes,
    ) -> bytes:
        head = _HEAD.pack(_MAGIC, 0, partition, sequence, timestamp_ms, *self._lengths)
        body = head[_CHECKED_FROM:] + self._names + padding
        return _MAGIC + _checksum(body, key, headers).to_bytes(4, "big") + body


def decode(
    run: str,
    value: bytes | None,
    key: bytes | None,
    headers: Headers = (),
    timestamp_ms: int | None = None,
) -> Payload:
    """Decode a record's value; never raises, whatever the bytes are. A None timestamp (set by the
    broker, or unknown) is not compared."""
    if value is None:
        value = next((content for name, content in headers if name == TAG), None)
        headers = [header for header in headers if header[0] != TAG]
    if value is None:
        return _UNREADABLE
    if len(value) < _HEAD.size or value[:4] != _MAGIC:
        return _decode_verifiable(run, value)
    _, crc, partition, sequence, sent_ms, run_length, client_length = _HEAD.unpack_from(value)
    client_at = _HEAD.size + run_length
    if len(value) < client_at + client_length:
        return _UNREADABLE
    intact = _checksum(value[_CHECKED_FROM:], key, headers) == crc
    try:
        writer_run = value[_HEAD.size : client_at].decode()
        client = value[client_at : client_at + client_length].decode()
    except UnicodeDecodeError:
        return _UNREADABLE
    if writer_run != run:
        return Payload(FOREIGN if intact else None, intact)
    intact = intact and timestamp_ms in (None, sent_ms)
    return Payload(f"{run}/{client}/{sequence}", intact, partition, client, sequence)


def _decode_verifiable(run: str, value: bytes) -> Payload:
    """The value of a VerifiableProducer of this run. It counts as intact if it can be read."""
    sender = sender_of(run, value)
    if sender is None:
        return _UNREADABLE
    client, sequence = sender
    return Payload(f"{run}/{client}/{sequence}", True, None, client, sequence)


def client_timestamp_ms(record: Any) -> int | None:
    """The timestamp that a client gave a record of kafka-python; None for LogAppendTime and for
    messages of magic 0."""
    if record.timestamp is None or record.timestamp_type == LOG_APPEND_TIME:
        return None
    return int(record.timestamp)


def decode_copy(run: str, value: bytes | None, key: bytes | None) -> Payload:
    """Decode a record that an application copied; its headers belong to the application."""
    payload = decode(run, value, key)
    if payload.client is None:
        return payload
    return replace(payload, value_id=f"{COPY}{payload.value_id}")


def key_text(key: bytes | None) -> str | None:
    """A key as text, as in the evidence."""
    return None if key is None else key.decode("utf-8", "backslashreplace")


def _pad(sequence: int, length: int) -> bytes:
    start = sequence & 0xFF
    if length <= 256:
        return _PATTERN[start : start + length]
    return (_PATTERN[start : start + 256] * (length // 256 + 1))[:length]


def _checksum(body: bytes, key: bytes | None, headers: Headers) -> int:
    """The checksum includes lengths, so that bytes cannot move between key, headers and value."""
    crc = crc32c(body)
    crc = crc32c(_frame(key), crc)
    for name, content in headers:
        crc = crc32c(_frame(name.encode()) + _frame(content), crc)
    return int(crc)


def _frame(part: bytes | None) -> bytes:
    return b"\xff" if part is None else len(part).to_bytes(4, "big") + bytes(part)
