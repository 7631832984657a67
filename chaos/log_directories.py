"""A broker's log directory as Kafka lays it out, read and hurt from outside.

Formats: `CheckpointFile`, "Record Batch" in Kafka's documentation. Nothing here needs the broker's
code, so it serves every target; all paths are of a node that does not run, unless said otherwise.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

_HEAD, _LAST_DELTA = struct.Struct(">qiib"), struct.Struct(">i")
_BEFORE_LENGTH = 12
_LAST_DELTA_AT = 23
_SMALLEST = (26, 34, 61)
"""How many bytes the smallest batch of magic 0, 1 and 2 has."""
_CODEC = 0x07
_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
_LEAVING = ("-delete", "-future", "-stray")
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a segment: where it lies in the file and which offsets it holds."""

    position: int
    size: int
    base: int
    last: int

    @property
    def end(self) -> int:
        return self.position + self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What was taken from one partition's log: `kept` is the first offset that is gone."""

    folder: str
    kept: int
    lost_bytes: int
    zeroed: bool

    def __str__(self) -> str:
        how = "zeroed" if self.zeroed else "cut"
        return f"{self.folder} {how} from offset {self.kept} on ({self.lost_bytes} bytes)"


def partitions(log_dir: Path) -> list[Path]:
    """The folders of partitions in a log directory, without those that wait for their deletion."""
    return [
        path
        for path in sorted(log_dir.iterdir())
        if path.is_dir() and _FOLDER.fullmatch(path.name) and not path.name.endswith(_LEAVING)
    ]


def empty(log_dir: Path) -> list[str]:
    """Delete all that a log directory holds, but not the folder, which is its broker's own; the
    names of the logs that are gone."""
    names = [folder.name for folder in partitions(log_dir)]
    for path in list(log_dir.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return [] if any(log_dir.iterdir()) else names


def recovery_points(log_dir: Path) -> dict[str, int]:
    """Folder name to the offset below which everything was flushed; 0 is not written down."""
    path = log_dir / RECOVERY_POINTS
    lines = path.read_text(errors="replace").splitlines()[2:] if path.exists() else []
    rows = [line.split() for line in lines]
    entries = [row for row in rows if len(row) == 3 and row[2].isdecimal()]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in entries}


def segments(folder: Path) -> list[Path]:
    """The segments of a partition in order; the last one is active."""
    return sorted(path for path in folder.glob("*.log") if path.stem.isdecimal())


def batches(segment: Path) -> Iterator[Batch]:
    """The batches of a segment up to the first that is none. A message of magic 0 or 1 tells its
    last offset alone: if it holds others, these begin behind the batch before it."""
    data = segment.read_bytes()
    at, following = 0, int(segment.stem)
    while at + min(_SMALLEST) <= len(data):
        base, length, _, magic = _HEAD.unpack_from(data, at)
        size = length + _BEFORE_LENGTH
        if magic not in range(len(_SMALLEST)) or size < _SMALLEST[magic] or at + size > len(data):
            return
        last = base
        if magic == len(_SMALLEST) - 1:
            last += _LAST_DELTA.unpack_from(data, at + _LAST_DELTA_AT)[0]
        elif data[at + _HEAD.size] & _CODEC:
            base = min(following, base)
        yield Batch(at, size, base, last)
        at, following = at + size, last + 1


def cut_power(folder: Path, recovery_point: int, random: Random) -> Cut | None:
    """Take from one partition what a power cut takes: from a random byte of the active segment on,
    which is cut there or zeroed to its end; its indexes and younger snapshots go alike.

    What lies below the recovery point, and closed segments, which are flushed when they are rolled,
    stay. None when everything had been flushed.
    """
    found = segments(folder)
    if not found:
        return None
    active = found[-1]
    risked = [batch for batch in batches(active) if batch.base >= recovery_point]
    if not risked:
        return None
    size = active.stat().st_size
    at = random.randrange(risked[0].position, size)
    zeroed = random.random() < 0.5
    _lose(active, at, zeroed=zeroed)
    _hurt_companions(folder, int(active.stem), random)
    kept = next((batch.base for batch in risked if batch.end > at), risked[-1].last + 1)
    return Cut(folder=folder.name, kept=kept, lost_bytes=size - at, zeroed=zeroed)


def _lose(path: Path, at: int, *, zeroed: bool) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.truncate(at)
        if zeroed:
            file.truncate(size)


def _hurt_companions(folder: Path, base: int, random: Random) -> None:
    """Indexes of the segment at `base`, and snapshots of producers from behind its begin."""
    hurt = [folder / f"{base:020d}{suffix}" for suffix in (".index", ".timeindex", ".txnindex")]
    hurt += [path for path in sorted(folder.glob("*.snapshot")) if int(path.stem) > base]
    for path in hurt:
        if path.exists() and (size := path.stat().st_size):
            _lose(path, random.randrange(size), zeroed=random.random() < 0.5)


def closed_batches(folder: Path) -> list[tuple[Path, Batch]]:
    """Every batch of a partition's closed segments."""
    return [(path, batch) for path in segments(folder)[:-1] for batch in batches(path)]


def flip_bit(segment: Path, batch: Batch, random: Random) -> int:
    """Flip one bit near the end of a batch, in its last record's value; the byte's position.

    Works on a running broker too: the file is changed in place.
    """
    at = batch.end - random.randint(2, 16)
    with segment.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1 << random.randrange(8)]))
    return at


def cut_segment(segment: Path, batch: Batch, random: Random) -> int:
    """End a segment's file in the middle of a batch; the position where it ends now."""
    at = batch.position + random.randrange(1, batch.size)
    _lose(segment, at, zeroed=False)
    return at
