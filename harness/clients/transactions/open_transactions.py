"""Whether every transaction is over: the last stable offset of each partition is its end."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Collection, Sequence

from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.metadata_requests import (
    LATEST,
    Slot,
    list_offsets_request,
    read_list_offsets,
)

ASK_S = 2.0
POLL_S = 0.2


def await_settled(
    bootstrap: Sequence[str], slots: Collection[Slot], *, deadline_s: float
) -> list[Slot]:
    """Wait until no transaction is open; the partitions where one still is at the deadline."""
    deadline = time.monotonic() + deadline_s
    while True:
        left = _open(bootstrap, slots)
        if not left or time.monotonic() > deadline:
            return left
        threading.Event().wait(POLL_S)


def _open(bootstrap: Sequence[str], slots: Collection[Slot]) -> list[Slot]:
    """Partitions whose leader did not say that both ends are one. Each broker is asked; only a
    leader answers without an error."""
    wanted, closed = sorted(slots), set()
    for address in bootstrap:
        stable, latest = (_ends(address, wanted, committed=one) for one in (True, False))
        closed |= {slot for slot in stable if stable[slot] == latest.get(slot)}
    return [slot for slot in wanted if slot not in closed]


def ends(bootstrap: Sequence[str], slots: Collection[Slot]) -> dict[Slot, int]:
    """Where partitions end, as far as their leaders tell."""
    wanted = sorted(slots)
    told: dict[Slot, int] = {}
    for address in bootstrap:
        told |= _ends(address, wanted, committed=False)
    return told


def _ends(address: str, slots: Sequence[Slot], *, committed: bool) -> dict[Slot, int]:
    try:
        wire = Connection(address, ASK_S)
    except OSError:
        return {}
    try:
        frame = wire.call(list_offsets_request(1, slots, LATEST, committed=committed))
    except (OSError, struct.error):
        return {}
    finally:
        wire.close()
    return {
        (topic, p): offset
        for topic, p, error, _, offset, _ in read_list_offsets(frame)
        if not error
    }
