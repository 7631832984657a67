"""Random partition folders in the formats of releases 0.8 to 3.9, also after power cuts.

Messages of magic 0 and 1 are written by kafka-python's builder, so that no code of the broker is
compared with itself.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kafka.record.legacy_records import LegacyRecordBatchBuilder

from tests.broker.log.helpers import NOW_MS
from urteil.broker.wire import lz4_frame
from urteil.broker.wire.batches import Compression, build_batch
from urteil.broker.wire.compression import compress

FAR = 3_000_000_000
OLD_CODECS = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
FORMATS = ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2))
INDEXES = ("both", "none", "no times", "first offsets", "empty")
DAMAGES = (
    "none", "none", "none", "last batch lost", "half a batch lost", "all lost", "zeros behind",
    "garbage behind", "bit flipped", "beginning lost",
)  # fmt: skip
NO_LENGTHS = ("zeros behind", "garbage behind", "beginning lost")
LEFTOVERS = (
    "00000000000000000003.log.deleted", "00000000000000000003.log.cleaned",
    "00000000000000000003.index.cleaned", "partition.metadata.tmp", "notes.txt",
)  # fmt: skip


class Row(NamedTuple):
    """A record; messages of magic 0 have no time, which is -1."""

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Written:
    """A batch in its file."""

    file: str
    position: int
    data: bytes
    magic: int
    rows: tuple[Row, ...]


@dataclass
class OldLog:
    """The files of one partition, the records written to them, and the damage."""

    what: str
    clean: bool
    recovery_point: int
    files: dict[str, bytes] = field(default_factory=dict)
    batches: list[Written] = field(default_factory=list)
    leaps: bool = False
    damage: str = "none"
    hurt_file: str = ""
    intact: list[Written] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch.rows]

    @property
    def bases(self) -> list[int]:
        return sorted(int(name[:20]) for name in self.files if name.endswith(".log"))

    @property
    def stops_kafka(self) -> bool:
        """Whether Apache Kafka 3.9 ends with this folder: it walks by lengths over the last segment
        after a clean stop, over a segment that it splits, and for its producers over flushed ones.
        """
        is_last = self.hurt_file == f"{self.bases[-1]:020d}.log"
        if self.leaps:
            return self.damage in (*NO_LENGTHS, "half a batch lost")
        return self.damage in NO_LENGTHS and (is_last if self.clean else self.is_flushed)

    @property
    def is_flushed(self) -> bool:
        """Whether the damage lies below the recovery point, or behind a clean stop, or is none."""
        if not self.hurt_file:
            return True
        flushed = [base for base in self.bases if base <= self.recovery_point]
        return self.clean or bool(flushed and int(self.hurt_file[:20]) < flushed[-1])

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)


def old_messages(magic: int, codec: int, rows: list[Row]) -> bytes:
    """Messages with these offsets, those of a codec within one message."""
    if codec == Compression.NONE:
        return _plain(magic, rows)
    first = rows[0].offset if magic else 0
    inner = _plain(magic, [row._replace(offset=row.offset - first) for row in rows])
    value = compress(codec, inner)
    if magic == 0 and codec == Compression.LZ4:
        value = lz4_frame.set_kafka_checksum(value)
    newest = max(row.time_ms for row in rows)
    wrapper = bytearray(_plain(magic, [Row(rows[-1].offset, newest, None, value)]))
    wrapper[17] = codec
    struct.pack_into(">I", wrapper, 12, zlib.crc32(wrapper[16:]))
    return bytes(wrapper)


def _plain(magic: int, rows: list[Row]) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 30)
    for row in rows:
        builder.append(row.offset, row.time_ms, row.key, row.value)
    return bytes(builder.build())


class _Draw:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.offset = 0

    def rows(self, magic: int) -> list[Row]:
        rows = []
        for _ in range(self.rng.randint(1, 6)):
            time_ms = NOW_MS + self.offset % FAR * 10 + self.rng.randint(-40, 40)
            value = b"%d-" % self.offset + self.rng.randbytes(self.rng.randint(0, 60))
            key = self.rng.choice((None, b"", b"key-%d" % self.rng.randint(0, 9)))
            rows.append(
                Row(
                    self.offset,
                    time_ms if magic else -1,
                    key,
                    self.rng.choice((value, value, None)),
                )
            )
            self.offset += self.rng.choice((1, 1, 1, 1, 3))
        return rows

    def batches(self, magic: int) -> list[tuple[bytes, tuple[Row, ...]]]:
        rows = self.rows(magic)
        if magic == 2:
            codec = self.rng.choice(list(Compression))
            data = build_batch(
                [(row.key, row.value, [], row.time_ms) for row in rows],
                base_offset=rows[0].offset,
                offsets=[row.offset for row in rows],
                compression=codec,
                leader_epoch=0,
            )
            return [(data, tuple(rows))]
        codec = self.rng.choice(OLD_CODECS)
        if codec:
            return [(old_messages(magic, codec, rows), tuple(rows))]
        return [(old_messages(magic, 0, [row]), (row,)) for row in rows]


def draw(seed: int, *, clean: bool | None = None) -> OldLog:
    """Draw the folder of a seed."""
    rng = random.Random(seed)
    formats, indexes = rng.choice(FORMATS), rng.choice(INDEXES)
    is_clean = rng.random() < 0.5 if clean is None else clean
    log = OldLog("", is_clean, 0)
    maker, segments = _Draw(rng), rng.randint(1, 3)
    name = ""
    if rng.random() < 0.2:
        maker.offset = rng.choice((7, FAR))
    leaps = log.leaps = rng.random() < 0.15
    count = segments * rng.randint(2, 6)
    for number in range(count):
        if number % (count // segments) == 0:
            base = log.batches[-1].rows[-1].offset + 1 if log.batches else maker.offset
            name = f"{base:020d}.log"
            log.files[name] = b""
        elif leaps and rng.random() < 0.4:
            maker.offset += FAR
        for data, rows in maker.batches(formats[number * len(formats) // count]):
            magic = data[16]
            log.batches.append(Written(name, len(log.files[name]), data, magic, rows))
            log.files[name] += data
    if not leaps:
        _write_indexes(log, indexes)
    log.damage = rng.choice(DAMAGES)
    log.intact = list(log.batches)
    _damage(log, log.damage, rng)
    log.recovery_point = rng.choice((0, maker.offset, maker.offset, rng.choice(log.bases)))
    log.files |= {name: b"left" for name in rng.sample(LEFTOVERS, rng.randint(0, 2))}
    if rng.random() < 0.3:
        log.files["leader-epoch-checkpoint"] = rng.choice((b"", b"0\n0\n"))
    log.what = (
        f"seed {seed}: magic {formats}, {segments} segments, indexes {indexes}, "
        f"{'leaps, ' if leaps else ''}{log.damage} {log.hurt_file}, "
        f"{'clean' if is_clean else 'unclean'}, recovery point {log.recovery_point}"
    )
    return log


def _write_indexes(log: OldLog, kind: str) -> None:
    """As the releases did: 0.8 to 0.10.0 with the first offset of what was appended."""
    if kind == "none":
        return
    for base in log.bases:
        name = f"{base:020d}.log"
        offsets, times, newest = b"", b"", -1
        for number, batch in enumerate(batch for batch in log.batches if batch.file == name):
            row = batch.rows[0 if kind == "first offsets" else -1]
            if number and kind != "empty":
                offsets += struct.pack(">ii", row.offset - base, batch.position)
            largest = max(row.time_ms for row in batch.rows)
            if largest > newest:
                newest = largest
                times += struct.pack(">qi", newest, batch.rows[-1].offset - base)
        log.files[f"{base:020d}.index"] = offsets
        if kind not in ("no times", "first offsets"):
            log.files[f"{base:020d}.timeindex"] = times


def _damage(log: OldLog, how: str, rng: random.Random) -> None:
    if how == "none":
        return
    base = rng.choice(log.bases)
    name = log.hurt_file = f"{base:020d}.log"
    data = log.files[name]
    here = [batch for batch in log.batches if batch.file == name]
    hurt, lost = _DAMAGES[how](data, here, rng)
    log.files[name] = hurt
    log.intact = [batch for batch in log.batches if batch not in lost]


_Damage = Callable[[bytes, list[Written], random.Random], tuple[bytes, list[Written]]]


def _flipped(data: bytes, here: list[Written], rng: random.Random) -> tuple[bytes, list[Written]]:
    """Behind the head, where the checksum sees it."""
    victim = rng.choice(here)
    hurt = bytearray(data)
    hurt[victim.position + len(victim.data) - 1] ^= 1 << rng.randrange(8)
    return bytes(hurt), [victim]


_DAMAGES: dict[str, _Damage] = {
    "last batch lost": lambda data, here, _: (data[: here[-1].position], here[-1:]),
    "half a batch lost": lambda data, here, _: (data[:-7], here[-1:]),
    "all lost": lambda _, here, __: (b"", here),
    "beginning lost": lambda data, here, _: (bytes(20) + data[20:], here[:1]),
    "zeros behind": lambda data, _, rng: (data + bytes(rng.randint(1, 300)), []),
    "garbage behind": lambda data, _, rng: (data + rng.randbytes(rng.randint(1, 300)), []),
    "bit flipped": _flipped,
}
