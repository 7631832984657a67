"""The progress of the producers, read from their journals as they grow."""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import msgspec

from urteil.harness.evidence.journal import Ok, Send
from urteil.harness.evidence.line_file import read_lines

_OK, _SEND = b'["ok",', b'["send",'
_FAIL, _INFO = b'["fail",', b'["info",'


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Counts over all producers so far."""

    invoked: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def pending_sends(self) -> int:
        return self.invoked - self.acked - self.failed - self.unknown

    def __add__(self, other: Progress) -> Progress:
        return Progress(
            invoked=self.invoked + other.invoked,
            acked=self.acked + other.acked,
            failed=self.failed + other.failed,
            unknown=self.unknown + other.unknown,
        )


class JournalTail:
    """Follows the journal of one producer.

    `ack_times_ns` is sorted by completion. `acked_ends` maps (topic, partition) to one past the
    highest acknowledged offset.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._counts: dict[bytes, int] = defaultdict(int)
        self._ok: msgspec.json.Decoder[Ok] = msgspec.json.Decoder(Ok)
        self._send: msgspec.json.Decoder[Send] = msgspec.json.Decoder(Send)
        self._topics: dict[int, str] = {}
        self.ack_times_ns = array("q")
        self.acked_ends: dict[tuple[str, int], int] = {}

    def follow(self) -> None:
        """Read the lines that were written since the last call, except an incomplete one."""
        if not self._path.exists():
            return
        for line in read_lines(self._path, self._offset):
            self._offset += len(line)
            self._read(line)

    def progress(self) -> Progress:
        counts = self._counts
        return Progress(
            invoked=counts[_SEND],
            acked=len(self.ack_times_ns),
            failed=counts[_FAIL],
            unknown=counts[_INFO],
        )

    def _read(self, line: bytes) -> None:
        kind = line[: line.find(b",") + 1]
        self._counts[kind] += 1
        if kind == _OK:
            self._read_ack(self._ok.decode(line))
        elif kind == _SEND:
            send = self._send.decode(line)
            self._topics[send.op] = send.topic
        elif kind in (_FAIL, _INFO):
            self._topics.pop(int(line.split(b",", 2)[1]), None)

    def _read_ack(self, ack: Ok) -> None:
        self.ack_times_ns.append(ack.complete_ns)
        topic = self._topics.pop(ack.op, None)
        if topic is None or ack.offset is None or ack.partition is None:
            return
        slot = (topic, ack.partition)
        self.acked_ends[slot] = max(self.acked_ends.get(slot, 0), ack.offset + 1)


class Tails:
    """The journals of all producers. Thread-safe."""

    def __init__(self, paths: list[Path]) -> None:
        self._tails = [JournalTail(path) for path in paths]
        self._lock = threading.Lock()

    def add(self, path: Path) -> None:
        """Follow another journal."""
        with self._lock:
            self._tails.append(JournalTail(path))

    def progress(self) -> Progress:
        with self._lock:
            self._follow()
            return sum((tail.progress() for tail in self._tails), Progress())

    def acknowledged_since(self, since_ns: int) -> int:
        """The number of acknowledgements at `since_ns` (CLOCK_MONOTONIC) or later."""
        with self._lock:
            self._follow()
            return sum(
                len(tail.ack_times_ns) - bisect_left(tail.ack_times_ns, since_ns)
                for tail in self._tails
            )

    def acked_ends(self) -> dict[tuple[str, int], int]:
        """By (topic, partition), one past the highest acknowledged offset."""
        ends: dict[tuple[str, int], int] = {}
        with self._lock:
            self._follow()
            for tail in self._tails:
                for slot, end in tail.acked_ends.items():
                    ends[slot] = max(end, ends.get(slot, 0))
        return ends

    def _follow(self) -> None:
        for tail in self._tails:
            tail.follow()
