"""Framing, order, backpressure and idleness of connections."""

from __future__ import annotations

import asyncio

import pytest

from tests.broker.net.raw import exchange, framed, run, serving, talk
from tests.waiting import wait_until
from urteil.broker.net.connection import Connection, Hangup
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.framing import RequestHeader, decode_response, encode_request
from urteil.broker.wire.messages import ApiVersionsRequest


async def echo(connection: Connection, frame: memoryview) -> list[bytes]:
    return [framed(bytes(frame))]


async def slow_echo(connection: Connection, frame: memoryview) -> list[bytes]:
    """The first frames take longest, so that reordering would show."""
    await asyncio.sleep(0.005 / (1 + frame[0]))
    return [framed(bytes(frame))]


def api_versions(version: int) -> bytes:
    header = RequestHeader(ApiKey.API_VERSIONS, version, 7, "test")
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    return b"".join(encode_request(header, request))


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
def test_frames_survive_every_split(chunk: int) -> None:
    async def scenario() -> None:
        async with serving(echo) as (port, _):
            frames = [bytes([n]) * n for n in range(1, 40)]
            data = b"".join(map(framed, frames))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for at in range(0, len(data), chunk):
                writer.write(data[at : at + chunk])
                await asyncio.sleep(0)
            assert await asyncio.wait_for(reader.readexactly(len(data)), 10) == data
            writer.close()

    run(scenario())


def test_responses_are_in_the_order_of_requests() -> None:
    async def scenario() -> None:
        async with serving(slow_echo) as (port, _):
            data = b"".join(framed(bytes([n])) for n in range(200))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            assert await asyncio.wait_for(reader.readexactly(len(data)), 20) == data
            writer.close()

    run(scenario())


@pytest.mark.parametrize("size", [-1, -(2**31), (1 << 20) + 1, 2**31 - 1])
def test_invalid_frame_size_closes_the_connection(size: int) -> None:
    async def scenario() -> None:
        async with serving(echo) as (port, _):
            assert await talk(port, size.to_bytes(4, "big", signed=True) + b"x" * 100) == b""

    run(scenario())


def test_hangup_closes_one_connection_only() -> None:
    async def picky(connection: Connection, frame: memoryview) -> list[bytes]:
        if frame[0] == 0:
            raise Hangup("requested")
        return [framed(bytes(frame))]

    async def scenario() -> None:
        async with serving(picky) as (port, server):
            assert await talk(port, framed(b"\0")) == b""
            assert await exchange(port, framed(b"\1")) == b"\1"
            await wait_until(lambda: not server.connections, deadline_s=5)

    run(scenario())


def test_unexpected_exception_closes_the_connection() -> None:
    async def broken(connection: Connection, frame: memoryview) -> list[bytes]:
        raise ValueError("nobody thought of that")

    async def scenario() -> None:
        async with serving(broken) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"x"))
            assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()

    run(scenario())


def test_unread_responses_do_not_fill_memory() -> None:
    answered = 0

    async def big(connection: Connection, frame: memoryview) -> list[bytes]:
        nonlocal answered
        answered += 1
        return [framed(bytes(1 << 20))]

    async def scenario() -> None:
        async with serving(big) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
            writer.write(framed(b"x") * 200)
            await asyncio.sleep(0.3)  # for as much as it would answer if nobody had to read it
            assert answered < 50
            got = 0
            while got < 200 * ((1 << 20) + 4):
                got += len(await asyncio.wait_for(reader.read(1 << 20), 10))
            assert answered == 200
            writer.close()

    run(scenario())


@pytest.mark.parametrize("answer", [[b"late"], None])
@pytest.mark.parametrize("only_reads", [False, True])
def test_write_of_a_closed_peer_is_completed(only_reads: bool, answer: list[bytes] | None) -> None:
    """A decision that is in the log must take effect."""

    async def scenario() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def two_steps(connection: Connection, frame: memoryview) -> list[bytes] | None:
            connection.only_reads = only_reads
            begun.set()
            try:
                await go_on.wait()
                ended.set_result("carried through")
            except asyncio.CancelledError:
                ended.set_result("given up")
                raise
            return answer

        async with serving(two_steps) as (port, server), asyncio.timeout(10):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"x"))
            await begun.wait()
            connection = next(iter(server.connections))
            writer.close()
            await wait_until(lambda: not server.connections, poll_s=0.001)
            go_on.set()
            assert await ended == ("given up" if only_reads else "carried through")
            await wait_until(lambda: not connection.is_serving, poll_s=0.001)

    run(scenario())


def test_requests_before_the_end_are_served() -> None:
    """A producer with acks=0 sends, and closes at once."""

    async def scenario() -> None:
        frames = []

        async def silent(_connection: Connection, frame: memoryview) -> None:
            await asyncio.sleep(0)
            frames.append(frame[0])

        async with serving(silent) as (port, server), asyncio.timeout(10):
            assert await talk(port, b"".join(framed(bytes([n])) for n in range(100))) == b""
            assert frames == list(range(100))
            assert not server.connections

    run(scenario())


def test_idle_connections_are_closed() -> None:
    async def scenario() -> None:
        async with serving(echo, max_idle_ms=100) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    run(scenario())


def test_api_versions_answers_an_unknown_version_in_version_0() -> None:
    async def scenario() -> None:
        async with serving() as (port, _):
            frame = bytearray(api_versions(4))
            frame[6:8] = (99).to_bytes(2, "big")
            correlation_id, answer = decode_response(
                ApiKey.API_VERSIONS, 0, memoryview(await exchange(port, bytes(frame)))
            )
            assert (correlation_id, answer.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
            ranges = [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys]
            assert ranges == [(ApiKey.API_VERSIONS, 0, 4)]

    run(scenario())


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_the_registry(version: int) -> None:
    async def scenario() -> None:
        async with serving() as (port, _):
            frame = memoryview(await exchange(port, api_versions(version)))
            _, answer = decode_response(ApiKey.API_VERSIONS, version, frame)
            assert answer.error_code == ErrorCode.NONE
            ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
            assert ranges[ApiKey.PRODUCE] == (0, 11)
            assert ranges[ApiKey.FETCH] == (0, 17)

    run(scenario())


@pytest.mark.parametrize(("key", "version"), [(999, 0), (-1, 0), (0, 99), (3, -1)])
def test_unknown_apis_and_versions_close_the_connection(key: int, version: int) -> None:
    async def scenario() -> None:
        async with serving() as (port, _):
            head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
            assert await talk(port, framed(head + bytes(4) + b"\xff\xff" + bytes(20))) == b""
            assert await exchange(port, api_versions(0))

    run(scenario())
