"""Images of a log directory in memory, to be damaged, written to disk and opened."""

from __future__ import annotations

import random
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.broker.log.helpers import NOW_MS, FixedClock, append, batch, marker
from urteil.broker.log.batch_scan import read_batches
from urteil.broker.log.log_manager import LogManager
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import File, Storage
from urteil.broker.log.txn_index import AbortedTxn
from urteil.broker.wire.batches import BatchHeader

TOPIC_ID = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")
HIT, OTHER = ("orders", 0), ("control", 0)
PROPS = {
    "broker.id": "1",
    "log.segment.bytes": "4200",
    "log.index.interval.bytes": "300",
    "log.retention.ms": "3600000",
}
EVERY_BYTES = 1000

Producing = tuple[int, int, int, int | None]


class Unsynced(Storage):
    """Without fsync, which a test of files, not of power, can spare."""

    def write_atomic(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        super().write_atomic(path, data, sync=False)

    def sync_directory(self, path: Path) -> None:
        pass

    def open(self, path: Path, *, create: bool = False) -> File:
        file = super().open(path, create=create)
        return _UnsyncedFile(path, file._fd)


class _UnsyncedFile(File):
    __slots__ = ()

    def sync(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch and its position."""

    file: str
    position: int
    header: BatchHeader
    data: bytes


@dataclass(slots=True)
class Image:
    """The files of a log directory by name, and the batches of its log."""

    clean: bool
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[tuple[str, int], list[Stored]] = field(default_factory=dict)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    producers: dict[int, Producing] = field(default_factory=dict)
    aborted: list[AbortedTxn] = field(default_factory=list)
    start: int = 0
    end: int = 0
    recovery_point: int = 0

    def write(self, folder: Path, name: str | None = None, data: bytes = b"") -> None:
        """Write the files to a folder, one of them with other content."""
        for each, content in self.files.items():
            path = folder / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if each == name else content)


def producing(log: PartitionLog) -> dict[int, Producing]:
    """The state of each producer: epoch, last sequence and offset, open transaction."""
    return {
        number: (
            entry.epoch,
            entry.last_sequence,
            entry.batches[-1].last_offset,
            entry.txn_first_offset,
        )
        for number, entry in log.producers.entries.items()
        if entry.batches
    }


def quick_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory if the system has one: the test writes thousands of small files."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def manager_of(folder: Path) -> LogManager:
    return LogManager([folder], PROPS, FixedClock(), storage=Unsynced())


def make_image(folder: Path, *, clean: bool) -> Image:
    """Write a directory with a log manager and stop it, cleanly or by a crash."""
    manager = manager_of(folder)
    manager.load("cluster")
    log = manager.get_or_create(*HIT, TOPIC_ID)
    other = manager.get_or_create(*OTHER, TOPIC_ID)
    _fill(log, random.Random(7))
    for number in range(10):
        append(other, batch([b"%d" % number] * 3), epoch=number // 4)
    for each in (log, other):
        each.update_high_watermark(each.log_end_offset)
    log.increment_log_start_offset(3)
    manager.tick(NOW_MS)
    manager.tick(NOW_MS)
    manager.checkpoint_log_start_offsets()
    manager.checkpoint_recovery_points()
    manager.checkpoint_high_watermarks({HIT: log.high_watermark, OTHER: other.high_watermark})
    image = Image(clean, start=log.log_start_offset, end=log.log_end_offset)
    image.recovery_point = log.recovery_point
    image.batches = {HIT: stored(log), OTHER: stored(other)}
    image.epochs, image.producers = log.epochs.entries, producing(log)
    image.aborted = log.aborted_transactions(0, log.log_end_offset)
    if clean:
        manager.shutdown(broker_epoch=12)
    else:
        crash_manager(manager)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".lock":
            image.files[str(path.relative_to(folder))] = path.read_bytes()
    return image


def _fill(log: PartitionLog, rng: random.Random) -> None:
    """Append plain and compressed batches of three producers, transactions and tombstones."""
    sequences = {1: 0, 2: 0, 3: 0, 4: 0}
    for number in range(130):
        who = rng.choice([0, 0, 1, 2, 3])
        count = rng.randrange(1, 5)
        values = [rng.randbytes(rng.randrange(90)) for _ in range(count)]
        epoch = number // 20 * 2
        shift = {"timestamp_ms": NOW_MS + number * 10 + rng.randrange(-30, 30)}
        if who == 0:
            values[-1] = None  # type: ignore[call-overload]
            append(log, batch(values, compression=rng.choice([0, 0, 1, 3, 4]), **shift), epoch)
            continue
        sent = (who, 0, sequences[who])
        sequences[who] += count
        append(log, batch(values, producer=sent, transactional=who == 3, **shift), epoch)
        if who == 3 and rng.random() < 0.6:
            append(log, batch(producer=(4, 0, sequences[4]), transactional=True, **shift), epoch)
            sequences[4] += 1
            for ended in (3, 4):
                end = marker(ended, 0, commit=rng.random() < 0.4)
                log.append_as_leader(end, epoch, NOW_MS, from_client=False)


def stored(log: PartitionLog) -> list[Stored]:
    return [
        Stored(
            str(segment.file.path.relative_to(log.directory.parent)),
            each.position,
            each.header,
            bytes(each.data),
        )
        for segment in log.segments
        for each in read_batches(segment.file, 0, segment.size)
    ]


def crash_manager(manager: LogManager) -> None:
    """Close all files without writing, as a killed process does."""
    for log in manager.logs():
        for segment in log.segments:
            segment.file.close()
    for directory in manager._directories:
        directory.close()


def damages(name: str, data: bytes, seeds: int) -> Iterator[tuple[str, bytes, int]]:
    """(name of the damage, damaged content, first changed byte)."""
    size = len(data)
    for cut in sorted({0, 1, size - 1, *range(EVERY_BYTES, size, EVERY_BYTES)}):
        if 0 <= cut < size:
            yield f"cut at {cut}", data[:cut], cut
    rng = random.Random(f"{name} {size}")
    for seed in range(seeds if size else 0):
        bits = [rng.randrange(size * 8) for _ in range(1 if seed % 3 else 4)]
        if name.endswith(".log"):  # within one batch, which determines the expected result
            bits = [bits[0] // 8 * 8 + bit % 8 for bit in bits]
        hurt = bytearray(data)
        for bit in bits:
            hurt[bit // 8] ^= 1 << bit % 8
        if bytes(hurt) != data:
            yield f"flipped {bits}", bytes(hurt), min(bits) // 8
