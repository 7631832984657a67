"""Write-ahead of large batches: pieces behind the end of the log, before the append."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.log.helpers import NOW_MS, batch, open_log
from urteil.broker.base.offload import run_steps
from urteil.broker.log.batch_checks import Batches
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import Buffer, File

LARGE = (b"x" * (5 << 20),)


def opened(folder: Path, segment_bytes: int = 1 << 30) -> PartitionLog:
    folder.mkdir(exist_ok=True)
    config = LogConfig(segment_bytes=segment_bytes, max_message_bytes=8 << 20)
    return open_log(folder, config=config)


def admitted(log: PartitionLog) -> Batches:
    steps = run_steps(log.validate_append(batch(LARGE), NOW_MS, from_client=True))
    assert isinstance(steps, list)
    return steps


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.log"))]


@pytest.fixture
def plain(tmp_path: Path) -> list[bytes]:
    """What the files hold when a small and a large batch are appended."""
    log = opened(tmp_path / "plain")
    log.append_as_leader(batch(), 3, NOW_MS)
    log.append_validated(admitted(log), 3, NOW_MS)
    return contents(tmp_path / "plain")


def test_batch_written_ahead_is_appended_with_its_head_alone(
    tmp_path: Path, plain: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path / "ahead")
    log.append_as_leader(batch(), 3, NOW_MS)
    validated = admitted(log)
    assert sum(1 for _ in log.write_ahead(validated, NOW_MS)) > 4
    written, real = [], File.write_at

    def write_at(self: File, buffers: list[Buffer], size: int, position: int) -> None:
        written.append(size)
        real(self, buffers, size, position)

    monkeypatch.setattr(File, "write_at", write_at)
    assert log.append_validated(validated, 3, NOW_MS).base_offset == 1
    log.drop_write_ahead()
    assert written == [16]
    assert contents(tmp_path / "ahead") == plain


def test_append_during_write_ahead_comes_first(tmp_path: Path, plain: list[bytes]) -> None:
    log = opened(tmp_path / "ahead")
    validated = admitted(log)
    steps = log.write_ahead(validated, NOW_MS)
    next(steps)
    log.append_as_leader(batch(), 3, NOW_MS)
    run_steps(steps)
    log.append_validated(validated, 3, NOW_MS)
    log.drop_write_ahead()
    assert contents(tmp_path / "ahead") == plain


@pytest.mark.parametrize("pieces", [1, 3, 99])
def test_dropped_write_ahead_leaves_no_bytes(tmp_path: Path, pieces: int) -> None:
    log = opened(tmp_path)
    log.append_as_leader(batch(), 3, NOW_MS)
    before = contents(tmp_path)
    for _ in zip(range(pieces), log.write_ahead(admitted(log), NOW_MS), strict=False):
        pass
    log.drop_write_ahead()
    assert contents(tmp_path) == before


def test_segment_sealed_during_write_ahead_is_trimmed(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_as_leader(batch(), 3, NOW_MS)
    (before,) = contents(tmp_path)
    steps = log.write_ahead(admitted(log), NOW_MS)
    next(steps)
    log.roll(NOW_MS)
    run_steps(steps)
    assert contents(tmp_path) == [before, b""]


def test_write_ahead_rolls_the_segment_first(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=6 << 20)
    for offset in range(2):
        validated = admitted(log)
        run_steps(log.write_ahead(validated, NOW_MS))
        assert log.append_validated(validated, 3, NOW_MS).base_offset == offset
        log.drop_write_ahead()
    first, second = contents(tmp_path)
    assert len(first) == len(second)


def test_write_ahead_stops_when_the_file_is_closed(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_as_leader(batch(), 3, NOW_MS)
    steps = log.write_ahead(admitted(log), NOW_MS)
    next(steps)
    log.close()
    run_steps(steps)
    log.drop_write_ahead()
    assert log.failure is None
