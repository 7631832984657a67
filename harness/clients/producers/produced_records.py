"""The records that a producer sends: record n of a client is the same with every library."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from urteil.harness.clients.options import LibraryOptions, LoadOptions
from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.workload_kinds import APPLICATION, WITH_APPLICATION

STRIDE = 7919
"""A prime: its multiples modulo the jitter rise and fall."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record to send. Without a value it is a tombstone."""

    topic: str
    partition: int
    key: str
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp_ms: int


class KeyChooser:
    """Keys of a small set. Each key belongs to one partition, so that a key has one order."""

    def __init__(self, keys: int, partitions: int, seed: int) -> None:
        self._per_partition = max(1, keys // max(1, partitions))
        self._partitions = partitions
        self._random = random.Random(seed)

    def key(self, slot: int) -> str:
        return f"k{slot + self._partitions * self._random.randrange(self._per_partition)}"


class TombstoneChooser:
    """Decides which sends are tombstones: a share of those to compacted topics, by the seed."""

    def __init__(self, spec: ClientSpec) -> None:
        self._topics = spec.compacted_topics()
        self._share = LoadOptions.of(spec.workload).deletes
        self._random = random.Random(f"{spec.seed}/deletes")

    def is_tombstone(self, topic: str) -> bool:
        return topic in self._topics and self._random.random() < self._share


class Records:
    """The records of one producer, spread over all its partitions in turn.

    The inputs of a declared application share their keys, as topics that are joined do: a key
    belongs to the partition of one number in each of them.
    """

    def __init__(self, spec: ClientSpec) -> None:
        self._partitions = spec.partitions()
        load = spec.workload
        options = LibraryOptions.of(load)
        is_bare = load.kind in WITH_APPLICATION or options.old_clients
        self._bare = is_bare or not options.headers
        self._tombstones = TombstoneChooser(spec)
        self._jitter_ms = LoadOptions.of(load).timestamp_jitter_ms
        self._key_slots = [
            partition if load.kind == APPLICATION else slot
            for slot, (_, partition) in enumerate(self._partitions)
        ]
        self._keys = KeyChooser(load.keys, len(set(self._key_slots)), spec.seed)
        self._encoder = Encoder(spec.run, spec.client, spec.workload.value_bytes)

    def record(self, op: int) -> Record:
        """Record `op`, to be sent now."""
        now_ms = time.time_ns() // 1_000_000 - op * STRIDE % (self._jitter_ms + 1)
        slot = op % len(self._partitions)
        topic, partition = self._partitions[slot]
        key = self._keys.key(self._key_slots[slot])
        value: bytes | None = None
        headers = self._headers(op)
        if self._tombstones.is_tombstone(topic):
            headers = self._encoder.tombstone(op, key.encode(), partition, now_ms)
        else:
            value = self._encoder.encode(op, key.encode(), partition, now_ms, headers)
        return Record(topic, partition, key, value, headers, now_ms)

    def _headers(self, op: int) -> list[tuple[str, bytes]]:
        """No header, one, or two with the same name. An application that copies need not keep them,
        and old clients do not support them."""
        return [] if self._bare else [("n", str(op).encode()), ("n", b"")][: op % 3]
