"""A SASL listener, tested by sockets: delays, limits and closed connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.broker.net.raw import framed, run
from tests.ports import free_port
from tests.waiting import wait_until
from urteil.broker.config.listeners import Listener
from urteil.broker.config.values import ConfigError
from urteil.broker.net.connection import Connection
from urteil.broker.net.host_names import Resolver
from urteil.broker.net.listener_security import ListenerSecurity
from urteil.broker.net.socket_server import SocketServer
from urteil.broker.security.sasl.scram import UserCredential, credential, user_of
from urteil.broker.wire.framing import RequestHeader, decode_response, encode_request
from urteil.broker.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from urteil.broker.wire.schema import Message

SECRET = "alice-Secret"
PLAIN = f'a.b.PlainLoginModule required user_alice="{SECRET}";'
SCRAM = "a.b.ScramLoginModule required;"
DELAY_MS = 300


def properties(**more: str) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.x.plain.sasl.jaas.config": PLAIN,
        "listener.name.x.scram-sha-256.sasl.jaas.config": SCRAM,
        "connection.failed.authentication.delay.ms": str(DELAY_MS),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def find(mechanism: str) -> Any:
    def credential_of(name: str, by_token: bool) -> UserCredential | None:
        own = UserCredential(credential(mechanism, SECRET), user_of("alice"))
        return own if name == "alice" else None

    return credential_of


def listener_security(*, is_inter_broker: bool = False, **more: str) -> ListenerSecurity:
    listener = Listener("X", "", 1, "", 1, "SASL_PLAINTEXT")
    made = ListenerSecurity(listener, is_inter_broker=is_inter_broker, find=find)
    made.reload(properties(**more))
    return made


async def report_principal(connection: Connection, frame: memoryview) -> list[Any]:
    return [framed(f"{connection.principal} {len(frame)}".encode())]


@contextlib.asynccontextmanager
async def serving(**more: str) -> AsyncIterator[tuple[int, SocketServer]]:
    port = free_port()
    server = SocketServer(
        max_frame_bytes=1 << 20,
        max_idle_ms=int(more.pop("idle_ms", "0")),
        backlog=5,
        answer=report_principal,
        secure_listeners={"X": listener_security(**more)},
    )
    await server.listen((Listener("X", "127.0.0.1", port, "", port, "SASL_PLAINTEXT"),), Resolver())
    try:
        yield port, server
    finally:
        await server.close()


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, message: Message, version: int) -> Any:
        header = RequestHeader(message.KEY, version, 7, "peer")
        frame = await self.send(b"".join(encode_request(header, message)))
        return decode_response(message.KEY, version, frame)[1] if frame is not None else None

    async def send(self, data: bytes) -> bytes | None:
        try:
            self._writer.write(data)
            size = int.from_bytes(await asyncio.wait_for(self._reader.readexactly(4), 10), "big")
            return await self._reader.readexactly(size)
        except (ConnectionError, asyncio.IncompleteReadError):
            return None

    async def log_in(self, password: str, mechanism: str = "PLAIN") -> Any:
        await self.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
        token = f"\0alice\0{password}".encode()
        return await self.ask(SaslAuthenticateRequest(auth_bytes=token), 1)

    def close(self) -> None:
        self._writer.close()


async def connect(port: int) -> Peer:
    return Peer(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 21))


def test_requests_carry_the_authenticated_principal() -> None:
    async def scenario() -> None:
        async with serving() as (port, _):
            peer = await connect(port)
            assert (await peer.log_in(SECRET)).error_code == 0
            assert await peer.send(framed(b"x" * 600_000)) == b"User:alice 600000"
            peer.close()

    run(scenario())


def test_wrong_password_is_delayed_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as (port, _):
            peer = await connect(port)
            clock = asyncio.get_running_loop().time  # timers go by it, in whole milliseconds
            began = clock()
            answer = await peer.log_in("wrong-Secret")
            assert answer.error_code == 58
            assert round((clock() - began) * 1000) >= DELAY_MS
            assert await peer.send(framed(b"x")) is None

    run(scenario())
    assert "Invalid username or password" in caplog.text
    assert "Secret" not in caplog.text


def test_unauthenticated_connections_are_limited_in_size_and_time() -> None:
    async def scenario() -> None:
        async with serving(sasl_server_max_receive_size="1000", idle_ms="400") as (port, server):
            for data in ((1001).to_bytes(4, "big"), framed(b"x" * 1001), b"\0\0"):
                peer = await connect(port)
                assert await peer.send(data) is None
                peer.close()
            await wait_until(lambda: not server.connections, deadline_s=10)

    run(scenario())


def test_expired_session_ends_at_the_next_request() -> None:
    async def scenario() -> None:
        more = {"listener.name.x.plain.connections.max.reauth.ms": "300"}
        async with serving(**more) as (port, server):
            peer = await connect(port)
            while not (known := next(iter(server.connections), None)) or not known.peer_host:
                await asyncio.sleep(0)
            now_s = 7.0
            known.time = lambda: now_s
            assert (await peer.log_in(SECRET)).session_lifetime_ms == 300
            assert await peer.send(framed(b"x")) == b"User:alice 1"
            now_s += 0.4  # longer than a session lives
            assert (await peer.log_in(SECRET)).error_code == 0
            assert await peer.send(framed(b"x")) == b"User:alice 1"
            now_s += 0.4
            assert await peer.send(framed(b"x")) is None

    run(scenario())


def test_peer_that_closes_during_the_delay_is_released() -> None:
    async def scenario() -> None:
        async with serving(connection_failed_authentication_delay_ms="60000") as (port, server):
            for _ in range(20):
                peer = await connect(port)
                asking = asyncio.create_task(peer.log_in("wrong"))
                await asyncio.sleep(0.02)  # no answer comes meanwhile: it is slowed down
                assert not asking.done()
                asking.cancel()
                peer.close()
            await wait_until(lambda: not server.connections, deadline_s=10)

    run(scenario())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sasl.enabled.mechanisms": "NONSENSE"}, "NONSENSE for configuration sasl.enabled"),
        ({"listener.name.x.plain.sasl.jaas.config": "x"}, "plain.sasl.jaas.config: Login module"),
        (
            {"listener.name.x.plain.sasl.jaas.config": SCRAM},
            "a.b.ScramLoginModule where PlainLoginModule belongs",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-512"},
            "Missing required configuration listener.name.x.scram-sha-512.sasl.jaas.config",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "GSSAPI"},
            "must be included in sasl.enabled.mechanisms",
        ),
    ],
)
def test_invalid_settings_are_reported_without_secrets(change: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        listener_security(is_inter_broker="GSSAPI" in str(change), **change)
    assert SECRET not in str(refused.value)
