"""Reads and damages a broker's log directory in Kafka's format, without the broker's code.

Formats: `CheckpointFile` and "Record Batch" in Kafka's documentation. The functions work for every
target. They expect a stopped node unless they say otherwise.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from urteil.chaos.flushed_files import FlushedFiles

_HEAD, _LAST_DELTA = struct.Struct(">qiib"), struct.Struct(">i")
_BEFORE_LENGTH = 12
_LAST_DELTA_AT = 23
_SMALLEST = (26, 34, 61)
"""The size in bytes of the smallest batch of magic 0, 1 and 2."""
_CODEC = 0x07
_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
_IGNORED_SUFFIXES = ("-delete", "-future", "-stray")
METADATA_LOG = "__cluster_metadata-0"
"""The folder of KRaft's metadata log."""
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
TOPIC_ID = "partition.metadata"
SETTLED_S = 5.0
"""Older changes of entries are on the disk: ext4 commits its journal at this interval."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a segment: its position in the file and its offsets."""

    position: int
    size: int
    base: int
    last: int

    @property
    def end(self) -> int:
        return self.position + self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLoss:
    """The data that one replica log lost: from `first_lost` on. The broker had declared data below
    `promised` as flushed."""

    folder: str
    first_lost: int
    promised: int
    lost_bytes: int
    how: str
    """The kind of loss: `cut`, `zeroed`, or `without its files`."""

    def __str__(self) -> str:
        at = f"from offset {self.first_lost} on"
        text = f"{self.folder} {self.how} {at} ({self.lost_bytes} bytes)"
        if self.promised > self.first_lost:
            text += f", though its recovery point is {self.promised}"
        return text


def partitions(log_dir: Path) -> list[Path]:
    """The partition folders of a log directory, without those that are being deleted."""
    return [
        path
        for path in sorted(log_dir.iterdir())
        if path.is_dir()
        and _FOLDER.fullmatch(path.name)
        and not path.name.endswith(_IGNORED_SUFFIXES)
    ]


def delete_content(log_dir: Path) -> list[str]:
    """Delete the content of a log directory, but not the folder itself. Returns the names of the
    deleted logs."""
    names = [folder.name for folder in partitions(log_dir)]
    for path in list(log_dir.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return [] if any(log_dir.iterdir()) else names


def replica_logs(log_dir: Path) -> list[Path]:
    """The partition folders without KRaft's metadata log."""
    return [folder for folder in partitions(log_dir) if folder.name != METADATA_LOG]


def recovery_points(log_dir: Path) -> dict[str, int]:
    """Folder name to the offset below which all data was flushed; absent for 0."""
    path = log_dir / RECOVERY_POINTS
    lines = path.read_text(errors="replace").splitlines()[2:] if path.exists() else []
    rows = [line.split() for line in lines]
    entries = [row for row in rows if len(row) == 3 and row[2].isdecimal()]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in entries}


def segments(folder: Path) -> list[Path]:
    """The segments of a partition in order; the last one is the active segment."""
    return sorted(path for path in folder.glob("*.log") if path.stem.isdecimal())


def batches(segment: Path) -> Iterator[Batch]:
    """The batches of a segment up to the first invalid one.

    A compressed message of magic 0 or 1 names only its last offset. Its offsets begin behind the
    previous batch.
    """
    data = segment.read_bytes()
    at, next_offset = 0, int(segment.stem)
    while at + min(_SMALLEST) <= len(data):
        base, length, _, magic = _HEAD.unpack_from(data, at)
        size = length + _BEFORE_LENGTH
        if magic not in range(len(_SMALLEST)) or size < _SMALLEST[magic] or at + size > len(data):
            return
        last = base
        if magic == len(_SMALLEST) - 1:
            last += _LAST_DELTA.unpack_from(data, at + _LAST_DELTA_AT)[0]
        elif data[at + _HEAD.size] & _CODEC:
            base = min(next_offset, base)
        yield Batch(at, size, base, last)
        at, next_offset = at + size, last + 1


def cut_power(
    folder: Path,
    recovery_point: int,
    random: Random,
    *,
    flushed: FlushedFiles | None = None,
    snapshots: bool = False,
) -> LogLoss | None:
    """Remove the data of one partition that a power cut loses.

    Each segment is cut or zeroed from a random byte on, behind its flushed end; the indexes of the
    first of them and younger snapshots alike, with `snapshots` also the snapshot at its begin.
    `flushed` knows the flushed ends. Without it, data below the recovery point are flushed, and
    closed segments, which brokers flush when they roll the log. None if all data was flushed.
    """
    ends = _flushed_ends(folder, recovery_point, flushed)
    unflushed = [(path, end) for path, end in ends if end < path.stat().st_size]
    if not unflushed:
        return None
    first = unflushed[0][0]
    cuts = [(path, random.randrange(end, path.stat().st_size)) for path, end in unflushed]
    first_lost = _end_offset(*cuts[0])
    lost_bytes = sum(path.stat().st_size - at for path, at in cuts)
    zeroed = random.random() < 0.5
    for path, at in cuts:
        _truncate(path, at, zeroed=zeroed)
    _damage_companions(folder, int(first.stem), random, also_first=snapshots)
    return LogLoss(
        folder=folder.name,
        first_lost=first_lost,
        promised=max(first_lost, recovery_point),
        lost_bytes=lost_bytes,
        how="zeroed" if zeroed else "cut",
    )


def lose_entries(log_dir: Path, flushed: FlushedFiles, at_ns: int) -> list[LogLoss]:
    """Undo the changes of entries, in a log directory and its partitions, that were not flushed and
    not `SETTLED_S` old at `at_ns` of the monotonic clock. Returns the losses of the logs.

    KRaft's metadata log keeps its entries: the lab may have read its `quorum-state` before the
    directory was flushed, and a vote that was never answered would seem to be a second one."""
    points, before = recovery_points(log_dir), _extents(log_dir)
    _undo_changes(log_dir, flushed, at_ns)
    for folder in replica_logs(log_dir):
        _undo_changes(folder, flushed, at_ns)
    after = _extents(log_dir)
    return [
        LogLoss(
            folder=name,
            first_lost=left.end,
            promised=max(left.end, points.get(name, 0)),
            lost_bytes=max(extent.size - left.size, 0),
            how="without its files",
        )
        for name, extent in before.items()
        for left in [after.get(name, _Extent(extent.start, extent.start, 0))]
        if left.end < extent.end
    ]


def _undo_changes(folder: Path, flushed: FlushedFiles, at_ns: int) -> None:
    for change in reversed(flushed.unflushed_changes(folder)):
        if at_ns - change.at_ns <= SETTLED_S * 1e9:
            change.undo(folder)
    flushed.note_flush_of(folder)


class _Extent(NamedTuple):
    """The first offset of a log, the offset behind its last batch, and its bytes."""

    start: int
    end: int
    size: int


def _extents(log_dir: Path) -> dict[str, _Extent]:
    """Folder name to extent, for logs with segments."""
    logs = {folder.name: segments(folder) for folder in replica_logs(log_dir)}
    return {
        name: _Extent(
            int(files[0].stem),
            _end_offset(files[-1], files[-1].stat().st_size),
            sum(path.stat().st_size for path in files),
        )
        for name, files in logs.items()
        if files
    }


def _flushed_ends(
    folder: Path, recovery_point: int, flushed: FlushedFiles | None
) -> list[tuple[Path, int]]:
    """Segments that may have unflushed data, in order, with the number of flushed bytes of each."""
    files = segments(folder)
    if flushed is not None:
        return [(path, flushed.flushed_bytes(path)) for path in files]
    behind = [
        (path, batch.position)
        for path in files[-1:]
        for batch in batches(path)
        if batch.base >= recovery_point
    ]
    return behind[:1]


def _end_offset(segment: Path, size: int) -> int:
    """The offset behind the last batch that lies in the first `size` bytes."""
    kept = [batch.last + 1 for batch in batches(segment) if batch.end <= size]
    return max(kept, default=int(segment.stem))


def lose_leader_epochs(folder: Path) -> bool:
    """Remove a partition's file of leader epochs. Returns whether it existed."""
    path = folder / LEADER_EPOCHS
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


def _truncate(path: Path, at: int, *, zeroed: bool) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.truncate(at)
        if zeroed:
            file.truncate(size)


def _damage_companions(folder: Path, base: int, random: Random, *, also_first: bool) -> None:
    """Damage the indexes of the segment at `base` and the producer snapshots behind its base, and
    with `also_first` the snapshot at its base."""
    companions = [
        folder / f"{base:020d}{suffix}" for suffix in (".index", ".timeindex", ".txnindex")
    ]
    companions += [
        path for path in sorted(folder.glob("*.snapshot")) if int(path.stem) > base - also_first
    ]
    for path in companions:
        if path.exists() and (size := path.stat().st_size):
            _truncate(path, random.randrange(size), zeroed=random.random() < 0.5)


def closed_batches(folder: Path) -> list[tuple[Path, Batch]]:
    """Every batch of a partition's closed segments."""
    return [(path, batch) for path in segments(folder)[:-1] for batch in batches(path)]


def flip_bit(segment: Path, batch: Batch, random: Random) -> int:
    """Flip one bit near the end of a batch, in its last record's value. Returns the position.

    Also works with a running broker, because the file is changed in place.
    """
    at = batch.end - random.randint(2, 16)
    with segment.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1 << random.randrange(8)]))
    return at


def cut_segment(segment: Path, batch: Batch, random: Random) -> int:
    """Truncate a segment in the middle of a batch. Returns the new end of the file."""
    at = batch.position + random.randrange(1, batch.size)
    _truncate(segment, at, zeroed=False)
    return at
