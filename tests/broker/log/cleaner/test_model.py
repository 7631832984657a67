"""Whatever is written, a cleaned log holds what a simple model says, byte by byte of each record.

The model is a list of all records and three rules: a newer value of the same key, an aborted
transaction, and a tombstone's time.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.log.cleaner.helpers import COMPACTED, batches, clean, put, records
from tests.broker.log.damage import Unsynced, quick_folder
from tests.broker.log.helpers import NOW_MS, close_logs, open_log
from tests.broker.log.test_recovery import check_indexes
from urteil.broker.log.file_names import SNAPSHOT
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.wire.batches import iter_records

RETENTION_MS = COMPACTED.delete_retention_ms
KEYS = st.integers(0, 5).map(lambda n: b"key-%d" % n)
VALUES = st.one_of(st.none(), st.binary(max_size=40))
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5)
STEPS = st.one_of(
    st.tuples(st.just("plain"), PAIRS, st.integers(0, 4), st.integers(0, 9)),
    st.tuples(st.just("idempotent"), PAIRS, st.integers(0, 4), st.integers(1, 2)),
    st.tuples(st.just("transactional"), PAIRS, st.integers(0, 4), st.integers(3, 4)),
    st.tuples(st.just("transaction"), PAIRS, st.integers(3, 4), st.booleans()),
    st.tuples(st.just("end"), st.booleans(), st.integers(3, 4)),
    st.tuples(st.just("roll")),
    st.tuples(st.just("clean"), st.integers(0, 700)),
    st.tuples(st.just("open")),
)


@dataclass(slots=True)
class Written:
    """One batch as it was written, and what the model thinks of it."""

    last_offset: int
    producer: int
    live: dict[int, tuple[bytes, bytes | None, int]]
    aborted: bool = False
    open: bool = False
    horizon_ms: int | None = None


@dataclass(slots=True)
class Model:
    batches: list[Written] = field(default_factory=list)

    def end(self, producer: int, *, commit: bool) -> None:
        for batch in self.batches:
            if batch.producer == producer and batch.open:
                batch.open, batch.aborted = False, not commit

    def clean(self, start: int, end: int, now_ms: int) -> None:
        latest: dict[bytes, int] = {}
        for batch in self.batches:
            for offset, (key, _, _) in batch.live.items():
                if start <= offset < end and not batch.aborted:
                    latest[key] = offset
        for batch in self.batches:
            if batch.last_offset < end:
                self._clean(batch, latest, now_ms)

    def _clean(self, written: Written, latest: dict[bytes, int], now_ms: int) -> None:
        for offset, (key, value, _) in list(written.live.items()):
            over = written.horizon_ms is not None and written.horizon_ms <= now_ms
            if written.aborted or latest.get(key, -1) > offset or (value is None and over):
                del written.live[offset]
        if written.horizon_ms is None and any(
            value is None for _, value, _ in written.live.values()
        ):
            written.horizon_ms = now_ms + RETENTION_MS

    @property
    def records(self) -> dict[int, tuple[bytes, bytes | None, int]]:
        return {offset: each for batch in self.batches for offset, each in batch.live.items()}


class Play:
    """The steps on a log and on the model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = self._open(None)
        self.model = Model()
        self.now_ms = NOW_MS
        self.sequences: dict[int, int] = {}

    def _open(self, cleaned_to: int | None) -> PartitionLog:
        remembered = CheckpointedState(cleaned_to=cleaned_to)
        return open_log(self.folder, config=COMPACTED, storage=Unsynced(), remembered=remembered)

    def plain(self, pairs: list[tuple[bytes, bytes | None]], codec: int, gap: int) -> None:
        self._put(pairs, codec, gap, -1, transactional=False)

    def idempotent(self, pairs: list[tuple[bytes, bytes | None]], codec: int, who: int) -> None:
        self._put(pairs, codec, 0, who, transactional=False)

    def transactional(self, pairs: list[tuple[bytes, bytes | None]], codec: int, who: int) -> None:
        self._put(pairs, codec, 0, who, transactional=True)

    def transaction(self, pairs: list[tuple[bytes, bytes | None]], who: int, commit: bool) -> None:
        self.transactional(pairs, 0, who)
        self.end(commit, who)

    def _put(
        self,
        pairs: list[tuple[bytes, bytes | None]],
        codec: int,
        gap: int,
        producer: int,
        *,
        transactional: bool,
    ) -> None:
        sequence = self.sequences.get(producer, 0)
        base = put(
            self.log,
            *pairs,
            timestamp_ms=NOW_MS + sequence,
            base_offset=self.log.log_end_offset + gap,
            compression=codec,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence if producer >= 0 else -1,
            transactional=transactional,
        )
        self.sequences[producer] = sequence + len(pairs)
        live = {base + n: (key, value, NOW_MS + sequence) for n, (key, value) in enumerate(pairs)}
        self.model.batches.append(
            Written(base + len(pairs) - 1, producer, live, open=transactional)
        )

    def end(self, commit: bool, producer: int) -> None:
        put(
            self.log,
            (struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0)),
            producer_id=producer,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
        self.model.end(producer, commit=commit)

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def clean(self, later_ms: int) -> None:
        self.now_ms += later_ms
        start, active = self.log.cleaned_to or 0, self.log.segments.active_segment.base_offset
        before = self.log.log_end_offset
        clean(self.log, self.now_ms)
        assert self.log.log_end_offset == before
        end = self.log.cleaned_to or 0
        if end == start:
            return  # nothing was dirty
        assert start < end <= min(active, self.log.last_stable_offset)
        self.model.clean(start, end, self.now_ms)

    def open(self) -> None:
        """After a crash, without the snapshots, so that producers are read from the batches."""
        log = self.log
        known = {
            each.producer_id: (each.epoch, each.last_sequence, each.txn_first_offset is not None)
            for each in log.producers.entries.values()
            if each.batches
        }
        watermark = log.high_watermark
        for segment in log.segments:
            segment.file.close()
        for path in self.folder.glob(f"*{SNAPSHOT}"):
            path.unlink()
        self.log = self._open(log.cleaned_to)
        self.log.update_high_watermark(watermark)
        entries = self.log.producers.entries
        assert known == {
            number: (entries[number].epoch, entries[number].last_sequence,
                     entries[number].txn_first_offset is not None)
            for number in known
        }  # fmt: skip

    def check(self) -> None:
        cleaned_records = {
            record.offset: (record.key, record.value, record.timestamp_ms)
            for record in records(self.log)
        }
        assert cleaned_records == self.model.records
        for header, data in batches(self.log):
            times = [record.timestamp_ms for record in iter_records(data)]
            assert not times or header.max_timestamp == max(times)
            assert len(times) == header.records_count
        check_indexes(self.log)
        self._check_transactions()

    def _check_transactions(self) -> None:
        """What is left of an aborted transaction is not taken for a committed one."""
        aborted = self.log.aborted_transactions(0, self.log.log_end_offset)
        for batch in self.model.batches:
            if batch.aborted:
                for offset in batch.live:
                    assert any(
                        txn.producer_id == batch.producer
                        and txn.first_offset <= offset < txn.last_offset
                        for txn in aborted
                    )


@settings(max_examples=80, deadline=None)
@given(steps=st.lists(STEPS, max_size=30))
def test_cleaned_log_equals_the_model(steps: list[tuple[object, ...]]) -> None:
    with quick_folder() as name:
        play = Play(Path(name))
        for what, *arguments in steps:
            getattr(play, str(what))(*arguments)
        for later_ms in (0, RETENTION_MS - 1, 1, RETENTION_MS):
            play.roll()
            play.plain([(b"more", b"")], 0, 0)
            play.clean(later_ms)
            play.check()
        play.open()
        play.check()
        close_logs(play.log)
