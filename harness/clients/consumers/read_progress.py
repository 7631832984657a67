"""The progress of live readers and the group towards the end offsets, by their journals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from urteil.chaos.waiting import until
from urteil.harness.clients.consumers.visible_ends import visible_ends
from urteil.harness.clients.transactions.open_transactions import read_end_offsets
from urteil.harness.evidence.line_file import read_lines
from urteil.harness.protocol.metadata_requests import Slot

PATIENCE_S = 26.0
"""Readers without new records for this time are not waited for: longer than `no_delivery` allows a
group."""

POLL_S = 0.2
_POLL = b'["poll",'


class _Slice(msgspec.Struct, array_like=True):
    """A slice of the journal up to its new position."""

    topic: str
    partition: int
    pass_: int
    before: int | None
    after: int | None


class _Poll(msgspec.Struct, tag="poll", array_like=True):
    poll: int
    invoke_ns: int
    complete_ns: int
    outcome: str
    error: str | None
    generation: int | None
    slices: list[_Slice]


_DECODER = msgspec.json.Decoder(_Poll)


@dataclass(slots=True)
class ReadProgress:
    """A reader, or a group with the journals of all its members, dead ones included."""

    journals: Sequence[Path]
    reached: dict[Slot, int] = field(default_factory=dict)
    _read_bytes: dict[Path, int] = field(default_factory=dict)

    def follow(self) -> None:
        """Read the complete lines that were written since the last call."""
        for path in self.journals:
            if not path.exists():
                continue
            for line in read_lines(path, self._read_bytes.get(path, 0)):
                self._read_bytes[path] = self._read_bytes.get(path, 0) + len(line)
                if line.startswith(_POLL):
                    self._record(_DECODER.decode(line))

    def _record(self, poll: _Poll) -> None:
        for piece in poll.slices:
            slot = (piece.topic, piece.partition)
            self.reached[slot] = max(self.reached.get(slot, 0), piece.after or 0)

    def is_below(self, ends: Mapping[Slot, int]) -> bool:
        return any(self.reached.get(slot, 0) < end for slot, end in ends.items())


def await_read(
    bootstrap: Sequence[str],
    slots: Sequence[Slot],
    readers: Sequence[ReadProgress],
    *,
    deadline_s: float,
    patience_s: float = PATIENCE_S,
    isolation: str = "read_uncommitted",
) -> bool:
    """Wait until each reader has reached the end of every partition whose leader reports one. False
    on the deadline, or if some readers got nothing more for `patience_s`."""
    ends = read_end_offsets(bootstrap, slots)
    if isolation == "read_committed":
        ends = visible_ends(bootstrap, ends)

    def read() -> list[dict[Slot, int]]:
        for reader in readers:
            reader.follow()
        return [dict(reader.reached) for reader in readers]

    def is_complete(_reached: object) -> bool:
        return not any(reader.is_below(ends) for reader in readers)

    reached = until(read, is_complete, deadline_s=deadline_s, poll_s=POLL_S, patience_s=patience_s)
    return is_complete(reached)
