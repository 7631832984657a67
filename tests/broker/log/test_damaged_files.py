"""Damage of every file of a log directory: truncation and flipped bits. The file is repaired, or
one line names it; below the high watermark only the damaged bytes are lost.

`SEEDS` is how many times bits are flipped in each file; raise it to hunt.
"""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

from tests.broker.log.damage import (
    HIT,
    OTHER,
    Image,
    Stored,
    crash_manager,
    damages,
    make_image,
    manager_of,
    producing,
    quick_folder,
    stored,
)
from tests.broker.log.helpers import append, batch, first_at, newest_in
from tests.broker.log.test_recovery import check_indexes
from urteil.broker.log.log_manager import LogManager
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.wire.batches import is_crc_valid, iter_batches, iter_records
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.primitives import CorruptBatch

SEEDS = int(os.environ.get("URTEIL_DAMAGE_SEEDS", "2"))

NO_MARK_IN_THE_CRC = frozenset(range(8)) | frozenset(range(12, 16))
"""Base offset and leader epoch of a batch lie outside its checksum, in Kafka as here."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(True, marks=pytest.mark.thorough), False],
    ids=["clean", "unclean"],
)
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return make_image(tmp_path_factory.mktemp("image"), clean=request.param)


KINDS = [
    ".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    "log-start-offset-checkpoint", "cleaner-offset-checkpoint", "meta.properties",
    "partition.metadata", ".kafka_cleanshutdown",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_file_is_repaired_or_reported(image: Image, kind: str) -> None:
    with quick_folder() as folder:
        _try_all(image, kind, Path(folder))


def _try_all(image: Image, kind: str, parent: Path) -> None:
    names = [name for name in image.files if name.endswith(kind) and not name.startswith("control")]
    assert names or (kind == ".kafka_cleanshutdown" and not image.clean)
    seeds = SEEDS if kind.startswith(".") else SEEDS * 4
    failures = []
    tried = itertools.count()
    for name in names:
        for what, data, first in damages(name, image.files[name], seeds):
            folder = parent / str(next(tried))
            image.write(folder, name, data)
            try:
                _check(image, folder, name, data, first)
            except Exception as error:
                text = str(error).replace("\n", " ").replace(str(folder), "")
                failures.append(f"{name} {what}: {type(error).__name__}: {text}"[:250])
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    if failures:
        pytest.fail(f"{len(failures)} of {next(tried)}:\n" + "\n".join(failures), pytrace=False)


def _check(image: Image, folder: Path, name: str, data: bytes, first: int) -> None:
    manager = manager_of(folder)
    try:
        manager.load("cluster")
    except OSError as refused:
        # one line that names the file and the mend, and nothing was touched
        crash_manager(manager)
        _check_refusal(str(refused), folder / name, data)
        return
    log, other = manager.get(*HIT), manager.get(*OTHER)
    assert log is not None
    assert other is not None
    assert [each.data for each in stored(other)] == [each.data for each in image.batches[OTHER]]
    if name.endswith(".log"):
        _check_hurt(image, log, name, first)
    else:
        _check_whole(image, log, name)
    # what is written now is found behind it, also after the next stop
    manager = _append_and_reopen(manager, log, folder)
    crash_manager(manager)


def _check_refusal(text: str, path: Path, data: bytes) -> None:
    assert path.name == "meta.properties", f"refused: {text}"
    assert text.count(str(path)) == 1
    assert "delete the file" in text
    assert "\n" not in text
    assert path.read_bytes() == data


def _append_and_reopen(manager: LogManager, log: PartitionLog, folder: Path) -> LogManager:
    before, end = stored(log), log.log_end_offset
    added = append(log, batch([b"after"]), epoch=1 << 20)
    assert added.base_offset == end
    manager.shutdown()
    manager = manager_of(folder)
    manager.load("cluster")
    again = manager.get(*HIT)
    assert again is not None
    batches = stored(again)
    assert [each.data for each in batches[: len(before)]] == [each.data for each in before]
    assert again.log_end_offset == end + 1
    newest = memoryview(b"".join(again.read(end, 1, upto=end + 1).records))
    assert [record.value for record in iter_records(newest)] == [b"after"]
    return manager


def _check_whole(image: Image, log: PartitionLog, name: str) -> None:
    """Check that all batches and the state that follows from them are complete."""
    batches = image.batches[HIT]
    assert [each.data for each in stored(log)] == [each.data for each in batches]
    assert log.log_end_offset == image.end
    if not name.startswith("log-start"):
        assert log.log_start_offset == image.start
    _check_reads(image, log)
    visible = [each.header for each in batches if each.header.last_offset >= log.log_start_offset]
    times = sorted({header.max_timestamp for header in visible})
    for time_ms in times[:: max(len(times) // 8, 1)]:
        found_offset = first_at(log, time_ms)
        first = next(header for header in visible if header.max_timestamp >= time_ms)
        assert found_offset is not None
        assert first.base_offset <= found_offset.offset <= first.last_offset
    newest = newest_in(log)
    assert newest is not None
    assert newest.timestamp_ms == max(each.header.max_timestamp for each in batches)
    if not name.endswith("index"):
        check_indexes(log)
    assert _spans(log) == [
        span for span in _ends(image.epochs, image.end) if span[1] > log.log_start_offset
    ]
    assert producing(log) == image.producers
    assert [(each.producer_id, each.first_offset, each.last_offset)
            for each in log.aborted_transactions(0, image.end)] == [
        (each.producer_id, each.first_offset, each.last_offset) for each in image.aborted
    ]  # fmt: skip


def _spans(log: PartitionLog) -> list[tuple[int, int]]:
    """(epoch, its end) of every epoch known."""
    return _ends(log.epochs.entries, log.log_end_offset)


def _ends(epochs: list[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    ends = [*(start for _, start in epochs[1:]), end]
    return [(epoch, upto) for (epoch, _), upto in zip(epochs, ends, strict=True)]


def _check_hurt(image: Image, log: PartitionLog, name: str, first: int) -> None:
    """All before the hurt batch is there; what is behind it is there, or known to be gone."""
    batches = image.batches[HIT]
    hurt = _hurt(batches, name, first)
    victim = batches[hurt]
    begins = victim.header.base_offset
    unmarked = first - victim.position in NO_MARK_IN_THE_CRC
    end = min(log.log_end_offset, image.end)
    behind = next((each.data for each in batches[hurt:] if each.file != name), b"no more")
    assert log.log_start_offset == min(image.start, log.log_end_offset)
    for each in batches:
        header = each.header
        if header.last_offset < log.log_start_offset or header.last_offset >= end:
            continue
        result = log.read(max(header.base_offset, log.log_start_offset), 1, upto=end)
        data = b"".join(result.records)
        if each.file == name and header.base_offset >= begins and data == behind:
            continue  # the end of a flushed segment is lost, those behind it are not
        if each is victim:  # whoever reads it sees it, or it still is the record that was sent
            assert unmarked or result.error or not data or not _is_whole(data)
        elif result.error:  # not without a word, and not before the damage
            assert result.error is ErrorCode.CORRUPT_MESSAGE
            assert header.base_offset >= begins
            assert each.file == name
        else:
            assert data == each.data, f"something else at {header.base_offset}"
    intact = [each for each in batches[:hurt] if each.header.last_offset >= image.start]
    assert not intact or log.log_end_offset > intact[-1].header.last_offset
    if log.log_end_offset < image.end and not unmarked:
        assert log.log_end_offset == begins, "the log ends elsewhere than at the damage"


def _is_whole(data: bytes) -> bool:
    try:
        return all(is_crc_valid(batch) for _, batch in iter_batches(memoryview(data)))
    except CorruptBatch:
        return False


def _hurt(batches: list[Stored], name: str, first: int) -> int:
    for index, each in enumerate(batches):
        if each.file == name and each.position <= first < each.position + len(each.data):
            return index
    raise AssertionError(f"{name} has no byte {first}")


def _check_reads(image: Image, log: PartitionLog) -> None:
    """Each batch is found at each of its ends, at one stroke and through to the end."""
    kept = [each for each in image.batches[HIT] if each.header.last_offset >= log.log_start_offset]
    for each in kept:
        for offset in (max(each.header.base_offset, log.log_start_offset), each.header.last_offset):
            result = log.read(offset, 1, upto=log.log_end_offset)
            assert b"".join(result.records) == each.data, f"at {offset}: {result.error}"
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, 3000, upto=log.log_end_offset)
        assert result.size, f"nothing at {offset}"
        offset = result.next_offset
