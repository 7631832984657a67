"""The small text files of a log directory, in Kafka's formats.

Sources: `CheckpointFile`, `OffsetCheckpointFile`, `LeaderEpochCheckpointFile`,
`PartitionMetadataFile`, `BrokerMetadataCheckpoint`.
"""

from __future__ import annotations

import base64
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

from urteil.broker.log.storage import Storage

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

ZERO_UUID = uuid.UUID(int=0)

TopicPartition = tuple[str, int]


RESERVED_DIRECTORY_IDS = 100
"""Apache Kafka reserves the directory ids below this number."""
# at most as many digits as a 64-bit number has; `str.isdigit` accepts more than 0 to 9
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_COUNT = re.compile(r"[0-9]{1,9}")
_SEPARATOR = re.compile(r"\s*[=:]\s*|\s+")
"""The separator of key and value in a Java properties file."""


class DamagedFile(ValueError):
    """A file that violates its format; the message names the file and the line."""


def _encode(lines: Iterable[str]) -> bytes:
    rows = list(lines)
    return "".join(f"{line}\n" for line in ("0", str(len(rows)), *rows)).encode()


def _decode(path: Path, data: bytes, columns: int) -> list[list[str]]:
    """Parse a checkpoint: version, row count, rows. An empty file is valid and has no rows."""
    if not data:
        return []
    lines = data.decode("ascii", "replace").split("\n")
    if len(lines) < 2 or lines[0] != "0" or not _COUNT.fullmatch(lines[1]):
        raise DamagedFile(f"{path}: malformed head {lines[:2]!r}")
    rows = [line.split() for line in lines[2:] if line]
    if len(rows) != int(lines[1]):
        raise DamagedFile(f"{path}: expected {lines[1]} entries, found {len(rows)}")
    for row in rows:
        if len(row) != columns or not all(_NUMBER.fullmatch(cell) for cell in row[-2:]):
            raise DamagedFile(f"{path}: malformed line {' '.join(row)!r}")
    return rows


def read_offsets(storage: Storage, path: Path) -> dict[TopicPartition, int]:
    """Offsets by (topic, partition); empty without a file. Raises DamagedFile."""
    if not storage.exists(path):
        return {}
    rows = _decode(path, storage.read(path), 3)
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def write_offsets(storage: Storage, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace an offset checkpoint atomically and durably."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    storage.write_atomic(path, _encode(lines))


class CheckpointFile:
    """An offset checkpoint whose rows are set on the event loop and written on any thread.

    Only the newest rows are written. A write that waited in a queue therefore never replaces newer
    rows, and costs no second sync.
    """

    __slots__ = ("_path", "_rows", "_storage", "_writing")

    def __init__(self, storage: Storage, path: Path) -> None:
        self._storage = storage
        self._path = path
        self._rows: deque[Mapping[TopicPartition, int]] = deque(maxlen=1)
        self._writing = threading.Lock()

    def put(self, rows: Mapping[TopicPartition, int]) -> None:
        """Set the rows for the next write; the caller must not change them afterwards."""
        self._rows.append(rows)

    def write(self) -> None:
        """Write the newest rows; on return they are durable. Raises OSError."""
        with self._writing:
            try:
                rows = self._rows.pop()
            except IndexError:
                return
            write_offsets(self._storage, self._path, rows)


def read_epochs(storage: Storage, path: Path) -> list[tuple[int, int]]:
    """(epoch, start offset) rows; empty without a file. Raises DamagedFile."""
    if not storage.exists(path):
        return []
    data = storage.read(path)
    if data and not data.endswith(b"\n"):  # the last number may be incomplete
        raise DamagedFile(f"{path}: the last line is incomplete")
    return [(int(epoch), int(start)) for epoch, start in _decode(path, data, 2)]


def write_epochs(
    storage: Storage, path: Path, epochs: Iterable[tuple[int, int]], *, grown: bool
) -> None:
    """Write the epochs without a sync. With `grown`, rows were only added since the last write, so
    the file is overwritten in place."""
    data = _encode(f"{epoch} {start}" for epoch, start in epochs)
    if grown:
        storage.write_over(path, data)
    else:
        storage.write_atomic(path, data, sync=False)


def encode_uuid(value: uuid.UUID) -> str:
    """Kafka's text of an id: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> uuid.UUID:
    """The inverse of `encode_uuid`. Raises ValueError."""
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def read_topic_id(storage: Storage, directory: Path) -> uuid.UUID:
    """The topic id in `partition.metadata`, the zero id without one. Raises DamagedFile."""
    path = directory / PARTITION_METADATA
    if not storage.exists(path):
        return ZERO_UUID
    fields = dict(
        line.split(": ", 1)
        for line in storage.read(path).decode("utf-8", "replace").splitlines()
        if ": " in line
    )
    try:
        return decode_uuid(fields["topic_id"])
    except (KeyError, ValueError) as error:
        raise DamagedFile(f"{path}: no topic id") from error


def write_topic_id(storage: Storage, directory: Path, topic_id: uuid.UUID) -> None:
    text = f"version: 0\ntopic_id: {encode_uuid(topic_id)}"
    storage.write_atomic(directory / PARTITION_METADATA, text.encode())


def read_meta(storage: Storage, directory: Path) -> dict[str, str]:
    """`meta.properties` as text by name; empty without a file.

    A file without a version, even an empty one, has version 0. Raises DamagedFile for another
    version and for malformed ids.
    """
    path = directory / META_PROPERTIES
    if not storage.exists(path):
        return {}
    lines = map(str.strip, storage.read(path).decode("utf-8", "replace").splitlines())
    rows = [line for line in lines if not line.startswith(("#", "!"))]
    pairs = (_SEPARATOR.split(row, maxsplit=1) for row in rows)
    fields = {pair[0]: pair[1] for pair in pairs if len(pair) > 1}
    version = fields.get("version", "0")
    if version != "0":
        raise DamagedFile(f"{path}: version {version!r}, expected 0")
    if (directory_id := fields.get("directory.id")) is not None:
        _check_directory_id(path, directory_id)
    if not _NUMBER.fullmatch(fields.get("broker.id", "0")):
        raise DamagedFile(f"{path}: broker.id {fields['broker.id']!r} is not a number")
    return fields


def _check_directory_id(path: Path, text: str) -> None:
    try:
        number = decode_uuid(text).int
    except ValueError:
        raise DamagedFile(f"{path}: directory.id {text!r} is not a directory id") from None
    if number < RESERVED_DIRECTORY_IDS:
        raise DamagedFile(f"{path}: directory.id {text!r} is reserved")


def write_meta(
    storage: Storage,
    directory: Path,
    broker_id: int,
    cluster_id: str,
    now_ms: int,
    directory_id: str | None = None,
) -> None:
    """Write `meta.properties`; an existing directory id is preserved."""
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now_ms / 1000))
    text = f"#\n#{date}\nbroker.id={broker_id}\nversion=0\ncluster.id={cluster_id}\n"
    if directory_id is not None:
        text += f"directory.id={encode_uuid(decode_uuid(directory_id))}\n"
    storage.write_atomic(directory / META_PROPERTIES, text.encode())
