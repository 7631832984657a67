"""Recovery of a log from files as crashes and power cuts leave them."""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.log.helpers import NOW_MS, append, batch, close_logs, end_txn, open_log, read_all
from urteil.broker.log.batch_scan import read_batches
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.log.storage import File, Storage
from urteil.broker.wire.errors import ErrorCode

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)

# (producer id or 0, records, size of a value, begins a new epoch, time)
SENDS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(1, 4),
        st.integers(0, 60),
        st.booleans(),
        st.integers(-50, 50),
    ),
    min_size=1,
    max_size=40,
)


@dataclass(frozen=True)
class Stored:
    """A batch and its position before the crash."""

    segment: Path
    position: int
    size: int
    data: bytes
    base_offset: int
    last_offset: int


def fill(log: PartitionLog, sends: list[tuple[int, int, int, bool, int]]) -> None:
    sequences: dict[int, int] = {}
    epoch = 0
    for producer_id, count, size, new_epoch, shift_ms in sends:
        epoch += new_epoch
        producer = None
        if producer_id:
            producer = (producer_id, 0, sequences.get(producer_id, 0))
            sequences[producer_id] = producer[2] + count
        time_ms = NOW_MS + shift_ms
        append(log, batch([b"x" * size] * count, producer=producer, timestamp_ms=time_ms), epoch)


def stored(log: PartitionLog) -> list[Stored]:
    return [
        Stored(
            segment.file.path,
            each.position,
            each.header.size,
            bytes(each.data),
            each.header.base_offset,
            each.header.last_offset,
        )
        for segment in log.segments
        for each in read_batches(segment.file, 0, segment.size)
    ]


def check_indexes(log: PartitionLog) -> None:
    """Every index entry points at its batch, and finds what it should."""
    for segment in log.segments:
        placed = list(read_batches(segment.file, 0, segment.size))
        lasts = {each.position: each.header.last_offset for each in placed}
        for offset, position in segment.offset_index.entries():
            assert lasts[position] == offset
        for timestamp_ms, offset in segment.time_index.entries():
            upto = [each.header for each in placed if each.header.last_offset <= offset]
            assert upto[-1].last_offset == offset
            assert max(header.max_timestamp for header in upto) == timestamp_ms
        times = [each.header.max_timestamp for each in placed]
        assert segment.max_timestamp[0] == max(times, default=-1)


def check_against_model(log: PartitionLog, prefix: list[Stored], folder: Path) -> None:
    """The log is that which a follower makes of the prefix, batch by batch."""
    folder.mkdir()
    model = open_log(folder, config=CONFIG)
    for each in prefix:
        assert model.append_as_follower(memoryview(each.data), NOW_MS).error is ErrorCode.NONE
    assert [each.data for each in stored(log)] == [each.data for each in prefix]
    assert log.log_end_offset == model.log_end_offset
    assert log.epochs.entries == model.epochs.entries
    for producer_id, entry in model.producers.entries.items():
        known = log.producers.entries[producer_id]
        # what came from a snapshot has the last batch alone
        assert entry.batches[-len(known.batches) :] == known.batches
        assert known.last_sequence == entry.last_sequence
    assert log.producers.entries.keys() == model.producers.entries.keys()
    close_logs(model)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), sends=SENDS)
def test_log_ends_before_its_first_damaged_batch(
    data: st.DataObject, sends: list[tuple[int, int, int, bool, int]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "log"
        folder.mkdir()
        log = open_log(folder, config=CONFIG)
        fill(log, sends)
        batches = stored(log)
        hit = data.draw(st.integers(0, len(batches) - 1))
        victim = batches[hit]
        inside = data.draw(st.integers(1, victim.size - 1))
        cut = data.draw(st.booleans())
        _damage(victim, inside, cut=cut)
        _damage_indexes(folder, data.draw(st.sampled_from(["keep", "remove", "garbage"])))
        close_logs(log)
        again = open_log(folder, config=CONFIG)
        # offset and leader epoch are not under the checksum, as in Kafka
        if not cut and (inside < 8 or 12 <= inside < 16):
            assert stored(again)[:hit] == batches[:hit]
            close_logs(again)
            return
        assert again.log_end_offset == victim.base_offset
        check_indexes(again)
        check_against_model(again, batches[:hit], Path(name) / "model")
        append(again, batch([b"after"]), epoch=99)
        assert read_all(again)[-1] == (victim.base_offset, b"after")
        content = read_all(again)
        close_logs(again)
        third = open_log(folder, config=CONFIG)
        assert read_all(third) == content
        close_logs(third)


def _damage(victim: Stored, inside: int, *, cut: bool) -> None:
    position = victim.position + inside
    with open(victim.segment, "r+b") as file:
        if cut:
            file.truncate(position)
            return
        file.seek(position)
        value = file.read(1)[0]
        file.seek(position)
        file.write(bytes([value ^ 0x41]))


def _damage_indexes(folder: Path, how: str) -> None:
    for path in [*folder.glob("*.index"), *folder.glob("*.timeindex")]:
        if how == "remove":
            path.unlink()
        elif how == "garbage":
            path.write_bytes(os.urandom(61))


@settings(max_examples=40, deadline=None)
@given(sends=SENDS, at=st.floats(0, 1))
def test_truncated_log_equals_a_shorter_log(
    sends: list[tuple[int, int, int, bool, int]], at: float
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "log"
        folder.mkdir()
        log = open_log(folder, config=CONFIG)
        fill(log, sends)
        batches = stored(log)
        offset = int(at * log.log_end_offset)
        log.truncate_to(offset)
        prefix = [each for each in batches if each.last_offset < offset]
        check_indexes(log)
        check_against_model(log, prefix, Path(name) / "model")
        log.close()
        again = open_log(folder, config=CONFIG, remembered=CheckpointedState(clean=True))
        check_indexes(again)
        check_against_model(again, prefix, Path(name) / "model2")
        close_logs(again)


@settings(max_examples=30, deadline=None)
@given(sends=SENDS, clean=st.booleans())
def test_undamaged_log_is_recovered_completely(
    sends: list[tuple[int, int, int, bool, int]], clean: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "log"
        folder.mkdir()
        log = open_log(folder, config=CONFIG)
        fill(log, sends)
        before = stored(log)
        if clean:
            log.close()
        point = log.recovery_point
        remembered = CheckpointedState(clean=clean, recovery_point=point)
        again = open_log(folder, config=CONFIG, remembered=remembered)
        assert again.recovery_point == (again.log_end_offset if clean else 0)
        check_indexes(again)
        check_against_model(again, before, Path(name) / "model")
        close_logs(log, again)


def test_segments_below_the_recovery_point_are_not_read(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=CONFIG)
    for _ in range(40):
        append(log, batch([b"x" * 50]))
    third = log.segments[3].base_offset
    log.flush(third)
    assert log.recovery_point == third
    _damage(stored(log)[0], 70, cut=False)
    again = open_log(tmp_path, config=CONFIG, remembered=CheckpointedState(recovery_point=third))
    assert again.log_end_offset == log.log_end_offset


@pytest.mark.parametrize("keeps", [0, 2])
@pytest.mark.parametrize("compacts", [False, True])
def test_unflushed_segment_shortened_by_power_loss_ends_the_log(
    tmp_path: Path, compacts: bool, keeps: int
) -> None:
    """Whole batches and the indexes are gone, the next segment is there: no later record may stand
    for those; what compaction removed looks the same."""
    config = replace(CONFIG, cleanup_policy="compact" if compacts else "delete")
    log = open_log(tmp_path, config=config)
    for _ in range(20):
        append(log, batch([b"x" * 50]))
    size = keeps * stored(log)[0].size
    close_logs(log)
    os.truncate(tmp_path / "00000000000000000000.log", size)
    for kind in ("index", "timeindex"):
        os.truncate(tmp_path / f"00000000000000000000.{kind}", 0)
    again = open_log(tmp_path, config=config)
    assert (again.log_end_offset, len(again.segments) > 1) == (
        (20, True) if compacts else (keeps, False)
    )


@pytest.mark.parametrize("keeps", [0, 2])
def test_truncated_compacted_log_ends_before_an_empty_segment(tmp_path: Path, keeps: int) -> None:
    """It had just rolled: else the log would end behind records that it has not, and no leader
    would be asked for them."""
    config = replace(CONFIG, cleanup_policy="compact")
    log = open_log(tmp_path, config=config)
    for _ in range(5):
        append(log, batch([b"x" * 50]))
    log.roll(NOW_MS)
    size = keeps * stored(log)[0].size
    close_logs(log)
    os.truncate(tmp_path / "00000000000000000000.log", size)
    for kind in ("index", "timeindex"):
        os.truncate(tmp_path / f"00000000000000000000.{kind}", 0)
    again = open_log(tmp_path, config=config)
    assert (again.log_end_offset, len(again.segments)) == (keeps, 1)


class Ledger(Storage):
    """Knows which files were cut and not synced since."""

    def __init__(self) -> None:
        self.cut: set[str] = set()

    def open(self, path: Path, *, create: bool = False) -> File:
        return LedgerFile(self.cut, super().open(path, create=create))


class LedgerFile(File):
    __slots__ = ("_cut",)

    def __init__(self, cut: set[str], file: File) -> None:
        super().__init__(file.path, file._fd)
        self._cut = cut

    def truncate(self, size: int) -> None:
        if size < self.size():
            self._cut.add(self.path.name)
        super().truncate(size)

    def sync(self) -> None:
        super().sync()
        self._cut.discard(self.path.name)


def test_truncation_is_durable_before_the_recovery_point_rises(tmp_path: Path) -> None:
    """A segment that has its cut tail back after a power cut does not fit the next one: all that
    follows would go, though it is durable. Here the log rolls right where it was cut."""
    storage = Ledger()
    log = open_log(tmp_path, config=CONFIG, storage=storage)
    for _ in range(4):
        append(log)
        log.flush(2)
    log.truncate_to(2)
    log.roll(NOW_MS)
    append(log)
    log.flush()
    assert (log.recovery_point, log.segments.base_offsets) == (3, [0, 2])
    assert storage.cut == set()


def test_truncation_below_the_recovery_point_is_durable_at_once(tmp_path: Path) -> None:
    """After a power cut the old records could stand where new ones were written over them, with
    later segments of the new epoch behind: the epochs would not show it."""
    storage = Ledger()
    log = open_log(tmp_path, config=CONFIG, storage=storage)
    for _ in range(4):
        append(log)
    log.flush()
    log.truncate_to(2)
    assert not [name for name in storage.cut if name.endswith(".log")]


def test_sealed_segment_without_an_index_is_recovered(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=CONFIG)
    for _ in range(40):
        append(log, batch([b"x" * 50]))
    log.close()
    (tmp_path / "00000000000000000000.index").unlink()
    (tmp_path / log.segments[1].path(".timeindex").name).write_bytes(b"12345")
    again = open_log(tmp_path, config=CONFIG, remembered=CheckpointedState(clean=True))
    check_indexes(again)
    assert again.segments[0].offset_index.count > 0
    assert again.log_end_offset == 40


def test_recovery_removes_unfinished_files(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=CONFIG)
    for _ in range(20):
        append(log, batch([b"x" * 50]))
    for name in ("00000000000000000003.log.deleted", "00000000000000000099.index", "x.tmp"):
        (tmp_path / name).write_bytes(b"old")
    again = open_log(tmp_path, config=CONFIG, remembered=CheckpointedState(log_start_offset=25))
    assert (again.log_start_offset, again.log_end_offset, len(again.segments)) == (25, 25, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00000000000000000000.log.kept",
        "00000000000000000007.log.kept",
        "00000000000000000014.log.kept",
        "00000000000000000025.index",
        "00000000000000000025.log",
        "00000000000000000025.timeindex",
        "leader-epoch-checkpoint",
    ]
    assert append(again).base_offset == 25


def test_log_start_survives_recovery(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=CONFIG)
    for _ in range(20):
        append(log, batch([b"x" * 50], producer=None))
    again = open_log(tmp_path, config=CONFIG, remembered=CheckpointedState(log_start_offset=13))
    assert [offset for offset, _ in read_all(again)] == list(range(13, 20))
    assert again.high_watermark == 13


@pytest.mark.parametrize("lie", [0, 5, 2**31 - 1])
def test_impossible_batch_length_ends_the_log(tmp_path: Path, lie: int) -> None:
    log = open_log(tmp_path)
    for _ in range(3):
        append(log)
    last = stored(log)[2]
    with open(last.segment, "r+b") as file:
        file.seek(last.position + 8)
        file.write(lie.to_bytes(4, "big"))
    assert open_log(tmp_path).log_end_offset == 2


def test_transaction_index_is_recovered(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=CONFIG)
    for number in range(30):
        append(log, batch([b"x" * 40], producer=(1, 0, number), transactional=True))
        end_txn(log, 1, commit=False)
    before = log.aborted_transactions(0, 99)
    for path in tmp_path.glob("*.txnindex"):
        path.write_bytes(b"broken")
    assert open_log(tmp_path, config=CONFIG).aborted_transactions(0, 99) == before
