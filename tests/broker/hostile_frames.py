"""Malformed frames, generated from a seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from urteil.broker.api.registry import SERVED, ServedApi
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.framing import RequestHeader, encode_request

# Whole requests of these are obeyed, by Apache Kafka too: that is not garbage.
_OBEYED = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
}


def _some_api(rng: random.Random) -> ServedApi:
    return rng.choice([request for key, request in sorted(SERVED.items()) if key not in _OBEYED])


def garbage(rng: random.Random) -> Iterator[bytes]:
    """Yield bytes for one connection each: wrong sizes, truncated frames, unknown APIs, false
    lengths."""
    kinds = [_bad_size, _cut_frame, _unknown_api, _noise_body, _damaged_request, _noise]
    while True:
        yield rng.choice(kinds)(rng)


def _framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def _bad_size(rng: random.Random) -> bytes:
    size = rng.choice([-1, -(2**31), 2**31 - 1, 200_000_000, rng.randrange(-(2**31), 0)])
    return struct.pack(">i", size) + rng.randbytes(rng.randrange(64))


def _cut_frame(rng: random.Random) -> bytes:
    """A valid size, up to 100 MiB, with far fewer bytes."""
    return struct.pack(">i", rng.randrange(1000, 104_857_600)) + rng.randbytes(rng.randrange(200))


def _unknown_api(rng: random.Random) -> bytes:
    key = rng.choice([-1, 70, 99, 1000, 32767])
    return _framed(struct.pack(">hhih", key, rng.randrange(20), 1, -1) + rng.randbytes(30))


def _noise_body(rng: random.Random) -> bytes:
    served = _some_api(rng)
    version = rng.randint(served.min_version, served.max_version)
    head = struct.pack(">hhih", served.key, version, 1, -1)
    return _framed(head + rng.randbytes(rng.randrange(120)))


def _damaged_request(rng: random.Random) -> bytes:
    """A valid request with some bytes changed, lengths included."""
    served = _some_api(rng)
    version = rng.randint(served.min_version, served.max_version)
    header = RequestHeader(served.key, version, 1, "fuzz")
    frame = bytearray(b"".join(encode_request(header, served.request())))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(8, len(frame))
        frame[at] = rng.choice([0x7F, 0xFF, 0x80, rng.randrange(256)])
    return bytes(frame[: rng.randint(8, len(frame))] if rng.random() < 0.3 else frame)


def _noise(rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(1, 300))
