"""What the probe asks and is answered, byte by byte, so that it is known which broker answered.

Metadata 8, ListOffsets 5 (the first that tells a leader that does not know its end, KIP-207) and 7
(the first that finds the largest time, KIP-734), OffsetForLeaderEpoch 2 and Fetch 9 (which name the
epoch that the asker takes for the leader's), InitProducerId 0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from urteil.harness.protocol.framing import Answer, frame, text

LATEST, EARLIEST, NEWEST = -1, -2, -3
METADATA, LIST_OFFSETS, EPOCH_END, FETCH = (3, 8), (2, 5), (23, 2), (1, 9)
LIST_NEWEST, INIT_PRODUCER_ID = (2, 7), (22, 0)
FETCH_BYTES = 1024
ERRORS = {
    1: "OFFSET_OUT_OF_RANGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    6: "NOT_LEADER_OR_FOLLOWER",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
}

Slot = tuple[str, int]


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


def newest_request(correlation: int, slots: Sequence[Slot]) -> bytes:
    """The whole frame of ListOffsets 7 for the record with the largest time. Names are short, and
    topics and their partitions few (`_compact`)."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in slots:
        by_topic.setdefault(topic, []).append(partition)
    body = struct.pack(">ibB", -1, 0, len(by_topic) + 1)
    for topic, partitions in by_topic.items():
        body += _compact(topic) + struct.pack(">B", len(partitions) + 1)
        for partition in partitions:
            body += struct.pack(">iiqB", partition, -1, NEWEST, 0)
        body += b"\0"
    content = struct.pack(">hhi", *LIST_NEWEST, correlation) + text("probe") + b"\0" + body + b"\0"
    return struct.pack(">i", len(content)) + content


def _compact(value: str) -> bytes:
    """A compact string of fewer than 127 bytes."""
    return struct.pack(">B", len(value.encode()) + 1) + value.encode()


def read_metadata(frame: bytes) -> tuple[dict[str, int], list[tuple[str, int, int, int, int]]]:
    """Brokers by address, and (topic, partition, leader, leader epoch, how many are in sync)."""
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
            _, in_sync, _ = answer.ids(), answer.ids(), answer.ids()
            found.append((topic, partition, leader, epoch, len(in_sync)))
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


def read_newest(frame: bytes) -> list[tuple[str, int, int, int, int, int]]:
    """The same of an answer to `newest_request`."""
    answer = Answer(frame)
    answer.take(">B")  # the header's tags
    answer.take(">i")
    found = []
    for _ in range(answer.take(">B") - 1):
        topic = answer.short()
        for _ in range(answer.take(">B") - 1):
            partition, error = answer.take(">i"), answer.take(">h")
            timestamp_ms, offset = answer.take(">q"), answer.take(">q")
            found.append((topic, partition, error, timestamp_ms, offset, answer.take(">i")))
            answer.take(">B")
        answer.take(">B")
    return found


def epoch_end_request(correlation: int, slot: Slot, current: int, epoch: int) -> bytes:
    """The whole frame of OffsetForLeaderEpoch 2 to whoever leads in the epoch `current`."""
    topic, partition = slot
    body = struct.pack(">i", 1) + text(topic) + struct.pack(">iiii", 1, partition, current, epoch)
    return frame(EPOCH_END, correlation, body)


def read_epoch_end(frame: bytes) -> tuple[int, int, int]:
    """Error, epoch and its end offset of the one partition in an answer."""
    answer = Answer(frame)
    answer.take(">i")
    answer.take(">i")
    answer.text()
    answer.take(">i")
    error = answer.take(">h")
    answer.take(">i")
    return error, answer.take(">i"), answer.take(">q")


def producer_id_request(correlation: int) -> bytes:
    """The whole frame of InitProducerId 0 for a producer without transactions."""
    return frame(INIT_PRODUCER_ID, correlation, struct.pack(">hi", -1, 0))


def read_producer_id(frame: bytes) -> tuple[int, int]:
    """Error and producer id."""
    answer = Answer(frame)
    answer.take(">i")
    return answer.take(">h"), answer.take(">q")


def fetch_request(correlation: int, slot: Slot, current: int, offset: int) -> bytes:
    """The whole frame of Fetch 9 without a session, which waits for nothing."""
    topic, partition = slot
    body = struct.pack(">iiiibiii", -1, 0, 0, FETCH_BYTES, 0, 0, -1, 1) + text(topic)
    body += struct.pack(">iiiqqi", 1, partition, current, offset, -1, FETCH_BYTES)
    return frame(FETCH, correlation, body + struct.pack(">i", 0))


def read_fetch_error(frame: bytes) -> int:
    """The error of the one partition in an answer, or that of the whole answer."""
    answer = Answer(frame)
    answer.take(">i")
    whole = answer.take(">h")
    answer.take(">i")
    if whole or not answer.take(">i"):
        return whole
    answer.text()
    answer.take(">i")
    answer.take(">i")
    return answer.take(">h")
