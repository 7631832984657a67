"""Asks every broker, all the time, who leads and where the partitions end.

    python -m urteil.harness.workload.probe SPEC.json

Requests are packed here, byte by byte: Metadata 8 and ListOffsets 5 (the first that tells a leader
that does not know its end, KIP-207), so that it is known which broker answered. One thread a
broker; a broker that does not answer is asked again.
"""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Sequence

from urteil.harness.history.journal import JournalWriter, OffsetAnswer, View
from urteil.harness.workload.client import Stop, run_client
from urteil.harness.workload.raw import Wire
from urteil.harness.workload.spec import ClientSpec

EVERY_S = 0.5
LATEST = -1
METADATA, LIST_OFFSETS = (3, 8), (2, 5)
ERRORS = {
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    6: "NOT_LEADER_OR_FOLLOWER",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
}

Slot = tuple[str, int]


def text(value: str) -> bytes:
    """A string of the protocol."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def frame(api: tuple[int, int], correlation: int, body: bytes) -> bytes:
    """A whole frame with a header of version 1."""
    content = struct.pack(">hhi", *api, correlation) + text("probe") + body
    return struct.pack(">i", len(content)) + content


def metadata_request(correlation: int, topics: Sequence[str]) -> bytes:
    """The whole frame of Metadata 8, which creates no topic."""
    names = b"".join(text(topic) for topic in topics)
    return frame(METADATA, correlation, struct.pack(">i", len(topics)) + names + b"\0\0\0")


def offsets_request(
    correlation: int, slots: Sequence[Slot], timestamp_ms: int, *, committed: bool = False
) -> bytes:
    """The whole frame of ListOffsets 5 as a consumer that reads uncommitted, or committed, asks."""
    body = struct.pack(">ibi", -1, int(committed), len(slots))
    for topic, partition in slots:
        body += text(topic) + struct.pack(">iiiq", 1, partition, -1, timestamp_ms)
    return frame(LIST_OFFSETS, correlation, body)


class Answer:
    """Reads an answer's fields; struct.error where it ends too early."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._at = 4

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._frame, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def text(self) -> str:
        length = self.take(">h")
        if length < 0:
            return ""
        self._at += length
        return self._frame[self._at - length : self._at].decode()

    def blob(self) -> bytes:
        """An array of bytes."""
        length = max(self.take(">i"), 0)
        self.skip(length)
        return self._frame[self._at - length : self._at]

    def skip(self, count: int) -> None:
        self._at += count

    def ids(self) -> None:
        """Pass over an array of broker ids."""
        for _ in range(self.take(">i")):
            self.take(">i")


def read_metadata(frame: bytes) -> tuple[dict[str, int], list[tuple[str, int, int, int]]]:
    """Brokers by address, and (topic, partition, leader, leader epoch)."""
    answer = Answer(frame)
    answer.take(">i")
    brokers: dict[str, int] = {}
    for _ in range(answer.take(">i")):
        node, host = answer.take(">i"), answer.text()
        brokers[f"{host}:{answer.take('>i')}"] = node
        answer.text()
    answer.text()
    answer.take(">i")
    found = []
    for _ in range(answer.take(">i")):
        answer.take(">h")
        topic = answer.text()
        answer.take(">b")
        for _ in range(answer.take(">i")):
            answer.take(">h")
            partition, leader, epoch = (answer.take(">i") for _ in range(3))
            found.append((topic, partition, leader, epoch))
            for _ in range(3):
                answer.ids()
        answer.take(">i")
    return brokers, found


def read_offsets(frame: bytes) -> list[tuple[str, int, int, int, int, int]]:
    """(topic, partition, error, timestamp, offset, leader epoch)."""
    answer = Answer(frame)
    answer.take(">i")
    found = []
    for _ in range(answer.take(">i")):
        topic = answer.text()
        for _ in range(answer.take(">i")):
            partition, error = answer.take(">i"), answer.take(">h")
            timestamp_ms, offset = answer.take(">q"), answer.take(">q")
            found.append((topic, partition, error, timestamp_ms, offset, answer.take(">i")))
    return found


class Asker:
    """Asks one broker."""

    def __init__(self, spec: ClientSpec, address: str, journal: JournalWriter) -> None:
        self._address = address
        self._journal = journal
        self._timeout_s = spec.workload.request_timeout_ms / 1000
        self._slots = spec.partitions()
        self._stable = spec.isolation == "read_committed"
        self._random = random.Random(f"{spec.seed}/{address}")
        self._since_ms = time.time_ns() // 1_000_000
        self._wire: Wire | None = None
        self._number = 0

    def ask(self) -> None:
        """One round; a connection that failed is opened anew in the next."""
        try:
            self._wire = self._wire or Wire(self._address, self._timeout_s)
            node = self._views(self._wire)
            if node is not None:
                self._ends(self._wire, node, LATEST)
                if self._stable:
                    self._ends(self._wire, node, LATEST, committed=True)
                now_ms = time.time_ns() // 1_000_000
                self._ends(self._wire, node, self._random.randint(self._since_ms, now_ms))
        except (OSError, struct.error, UnicodeDecodeError):
            self.close()

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _views(self, wire: Wire) -> int | None:
        self._number += 1
        topics = sorted({topic for topic, _ in self._slots})
        brokers, found = read_metadata(wire.ask(metadata_request(self._number, topics)))
        node = brokers.get(self._address)
        if node is not None:
            at_ns = time.monotonic_ns()
            for topic, partition, leader, epoch in found:
                self._journal.write(View(at_ns, node, topic, partition, leader, epoch))
        return node

    def _ends(self, wire: Wire, node: int, asked_ms: int, *, committed: bool = False) -> None:
        self._number += 1
        end = "stable" if committed else "latest"
        query = end if asked_ms == LATEST else f"time:{asked_ms}"
        invoke_ns = time.monotonic_ns()
        request = offsets_request(self._number, self._slots, asked_ms, committed=committed)
        frame = wire.ask(request)
        complete_ns = time.monotonic_ns()
        for topic, partition, error, timestamp_ms, offset, epoch in read_offsets(frame):
            self._journal.write(
                OffsetAnswer(invoke_ns, complete_ns, query, topic, partition, offset, node,
                             ERRORS.get(error, str(error)) if error else None, LIST_OFFSETS[1],
                             epoch, timestamp_ms)
            )  # fmt: skip


def probe(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Ask all brokers until the end."""
    over = threading.Event()

    def run(asker: Asker) -> None:
        while not over.is_set():
            asker.ask()
            over.wait(EVERY_S)
        asker.close()

    askers = [Asker(spec, address, journal) for address in spec.bootstrap]
    threads = [threading.Thread(target=run, args=(asker,), daemon=True) for asker in askers]
    for thread in threads:
        thread.start()
    while not stop.asked():
        stop.wait(0.2)
    over.set()
    for thread in threads:
        thread.join(spec.workload.request_timeout_ms / 1000 + 1)


if __name__ == "__main__":
    run_client(probe)
