"""Responses with parts of files: sent from the file, in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.broker.net.raw import framed, run, serving
from tests.waiting import wait_until
from urteil.broker.log.storage import LENT_FROM_BYTES, File, FileRange, Storage
from urteil.broker.net.connection import Connection

DATA = random.Random(5).randbytes(3_000_000)


@pytest.fixture
def file(tmp_path: Path) -> File:
    opened = Storage().open(tmp_path / "00.log", create=True)
    opened.write_at([DATA], len(DATA), 0)
    return opened


def lent(file: File, size: int, position: int = 0) -> FileRange:
    file_range = file.lend(size, position)
    assert isinstance(file_range, FileRange)
    return file_range


def from_file(file: File, size: int) -> list[Any]:
    return [size.to_bytes(4, "big"), lent(file, size), b""]


def descriptors() -> list[str]:
    """The open descriptors of the process, by name; those of closed loops disappear with a
    delay."""
    names = []
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sorted(name for name in names if name.startswith(("socket:", "/")))


def test_small_ranges_are_read_and_large_ranges_sent(file: File) -> None:
    assert file.lend(LENT_FROM_BYTES - 1, 7) == DATA[7 : LENT_FROM_BYTES + 6]
    assert len(lent(file, LENT_FROM_BYTES)) == LENT_FROM_BYTES


def test_slow_reader_gets_ranges_and_small_responses_in_order(file: File) -> None:
    sizes = [2_500_000, 0, 0, 1_500_000, 0, 2_999_999]

    async def answer(_: Connection, frame: memoryview) -> list[Any]:
        size = sizes[frame[0]]
        return from_file(file, size) if size else [framed(b"small" * 50_000)]

    async def scenario() -> None:
        async with serving(answer) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
            writer.write(b"".join(framed(bytes([n])) for n in range(len(sizes))))
            for size in sizes:
                expected = DATA[:size] if size else b"small" * 50_000
                length = int.from_bytes(await reader.readexactly(4), "big")
                assert await asyncio.wait_for(reader.readexactly(length), 10) == expected
            writer.close()

    run(scenario())


def test_closed_and_removed_file_is_sent(file: File) -> None:
    async def answer(_: Connection, frame: memoryview) -> list[Any]:
        buffers = from_file(file, 2_000_000)
        file.path.unlink()
        file.close()
        return buffers

    async def scenario() -> None:
        async with serving(answer) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"x"))
            assert await asyncio.wait_for(reader.readexactly(2_000_004), 10) == (
                (2_000_000).to_bytes(4, "big") + DATA[:2_000_000]
            )
            writer.close()

    run(scenario())
    assert not [name for name in descriptors() if name.startswith(str(file.path))]


def test_truncated_file_closes_the_connection(file: File) -> None:
    async def answer(_: Connection, frame: memoryview) -> list[Any]:
        buffers = from_file(file, 2_000_000)
        file.truncate(1000)
        return buffers

    async def scenario() -> None:
        async with serving(answer) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"x"))
            assert len(await asyncio.wait_for(reader.read(-1), 10)) == 1004
            writer.close()

    run(scenario())


def test_stopped_reader_is_idle_but_slow_reader_is_not(file: File) -> None:
    size, count = 3_000_000, 8  # more than the system keeps

    async def answer(_: Connection, frame: memoryview) -> list[Any]:
        return [(size * count).to_bytes(4, "big"), *(lent(file, size) for _ in range(count))]

    async def scenario() -> None:
        async with serving(answer, max_idle_ms=2_000) as (port, server):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
            writer.write(framed(b"x"))
            await reader.readexactly(4)
            for _ in range(count):
                await asyncio.sleep(0.3)  # a slow reader: in all longer than one may be idle
                assert await reader.readexactly(size) == DATA
            writer.write(framed(b"x"))
            await wait_until(lambda: not server.connections, deadline_s=20)
            writer.close()

    run(scenario())


def test_reader_that_closes_early_leaves_no_descriptor(file: File) -> None:
    async def answer(_: Connection, frame: memoryview) -> list[Any]:
        return from_file(file, 3_000_000)

    async def scenario() -> None:
        async with serving(answer) as (port, server):
            gc.collect()  # what earlier tests left open shall not be closed meanwhile
            before = descriptors()
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
            for _ in range(5):
                writer.write(framed(b"x"))
            await reader.readexactly(100)
            writer.transport.abort()
            await wait_until(
                lambda: not server.connections and descriptors() == before, deadline_s=10
            )

    run(scenario())
