"""The log of the process: complete, in order, and in few writes."""

from __future__ import annotations

import asyncio
import io
import logging
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from urteil.broker.process_log import line_handler


class CountedStream(io.StringIO):
    """Counts its writes."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


@pytest.fixture
def stream() -> CountedStream:
    return CountedStream()


@pytest.fixture
def log(stream: CountedStream) -> Iterator[logging.Logger]:
    log = logging.getLogger("said")
    handler = line_handler(stream)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    yield log
    log.removeHandler(handler)


def test_lines_of_a_turn_leave_in_one_write(log: logging.Logger, stream: CountedStream) -> None:
    async def turn() -> int:
        for number in range(100):
            log.info("line %d", number)
        held = stream.writes
        await asyncio.sleep(0)
        return held

    assert asyncio.run(turn()) == 0
    assert stream.writes == 1
    said = stream.getvalue().splitlines()
    assert [line.rpartition(" ")[2] for line in said] == [str(n) for n in range(100)]
    line = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} INFO said line 0"
    assert re.fullmatch(line, said[0])


def test_warnings_and_lines_of_threads_flush_at_once(
    log: logging.Logger, stream: CountedStream
) -> None:
    async def turn() -> list[str]:
        log.info("first")
        log.warning("second")
        lines = [stream.getvalue()]
        log.info("third")
        await asyncio.to_thread(log.info, "fourth")
        return [*lines, stream.getvalue()]

    at_once, later = asyncio.run(turn())
    assert [line.split()[-1] for line in at_once.splitlines()] == ["first", "second"]
    assert [line.split()[-1] for line in later.splitlines()] == [
        "first", "second", "third", "fourth",
    ]  # fmt: skip


def test_lines_of_a_long_turn_leave_before_its_end(
    log: logging.Logger, stream: CountedStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def turn() -> str:
        log.info("begins")
        later_s = time.time() + 1
        monkeypatch.setattr(time, "time", lambda: later_s)
        log.info("goes on")
        return stream.getvalue()

    assert asyncio.run(turn()).count("\n") == 2


def test_full_disk_does_not_stop_the_broker(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = tmp_path / "broker.log"
    path.write_text("x" * 100)
    with path.open("a", buffering=1) as stream:
        handler = line_handler(stream)
        log = logging.Logger("full")
        log.addHandler(handler)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
        try:
            log.error("nobody will read this")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        log.error("but this")
    assert "but this" in path.read_text()
