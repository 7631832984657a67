"""Open transactions: without one, a partition's last stable offset is its end offset."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from operator import not_

from urteil.chaos.waiting import until
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.metadata_requests import (
    LATEST,
    LIST_OFFSETS,
    Slot,
    list_offsets_request,
    read_list_offsets,
)
from urteil.harness.protocol.served_versions import highest_version, read_served_versions

REQUEST_S = 2.0
POLL_S = 0.2


def await_no_open_transactions(
    bootstrap: Sequence[str], slots: Collection[Slot], *, deadline_s: float
) -> list[Slot]:
    """Wait until no transaction is open. Returns the partitions with an open transaction at the
    deadline."""
    return until(lambda: _find_open(bootstrap, slots), not_, deadline_s=deadline_s, poll_s=POLL_S)


def _find_open(bootstrap: Sequence[str], slots: Collection[Slot]) -> list[Slot]:
    """Partitions whose leader did not report equal ends. Every broker gets the request; only a
    leader responds without an error."""
    ordered, closed = sorted(slots), set()
    for address in bootstrap:
        stable, latest = (
            _request_ends(address, ordered, committed=is_committed)
            for is_committed in (True, False)
        )
        closed |= {slot for slot in stable if stable[slot] == latest.get(slot)}
    return [slot for slot in ordered if slot not in closed]


def read_end_offsets(bootstrap: Sequence[str], slots: Collection[Slot]) -> dict[Slot, int]:
    """The end offsets of partitions, as far as their leaders report them."""
    ordered = sorted(slots)
    ends: dict[Slot, int] = {}
    for address in bootstrap:
        ends |= _request_ends(address, ordered, committed=False)
    return ends


def _request_ends(address: str, slots: Sequence[Slot], *, committed: bool) -> dict[Slot, int]:
    try:
        connection = Connection(address, REQUEST_S)
    except OSError:
        return {}
    try:
        _, version = highest_version(LIST_OFFSETS, read_served_versions(connection))
        request = list_offsets_request(1, slots, LATEST, committed=committed, version=version)
        frame = connection.call(request)
    except (OSError, struct.error):
        return {}
    finally:
        connection.close()
    return {
        (topic, p): offset
        for topic, p, error, _, offset, _ in read_list_offsets(frame, version)
        if not error
    }
