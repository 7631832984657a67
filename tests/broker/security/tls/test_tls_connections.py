"""A TLS listener, tested by sockets: authentication, principals, and the cost of malicious
peers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.broker.net.raw import framed, run
from tests.broker.security.tls.certificates import LOCAL, java_chain, pem_file
from tests.ports import free_port
from urteil.broker.config.listeners import Listener
from urteil.broker.config.values import ConfigError
from urteil.broker.log.storage import Storage
from urteil.broker.net.channels import Channels, Endpoint
from urteil.broker.net.connection import WRITE_HIGH_BYTES, Connection
from urteil.broker.net.host_names import Resolver
from urteil.broker.net.listener_security import ListenerSecurity
from urteil.broker.net.socket_server import SocketServer
from urteil.broker.security.tls.contexts import TlsMaterial
from urteil.broker.wire.framing import encode_response
from urteil.broker.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from urteil.harness.cluster.certificates import PASSWORD, Authority, Issued

AUTHORITY = Authority()
BROKER = AUTHORITY.issue("broker", hosts=LOCAL)
ALICE = AUTHORITY.issue([(NameOID.ORGANIZATIONAL_UNIT_NAME, "people"), (NameOID.COMMON_NAME, "al")])
REQUEST = framed(b"ab")


def properties(**more: str) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": BROKER.key_pem(),
        "ssl.keystore.certificate.chain": BROKER.pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": AUTHORITY.pem,
        "listener.name.x.ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+),OU=people$/$1/",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def listener_security(
    *, is_inter_broker: bool = False, of: dict[str, str] | None = None, **more: str
) -> ListenerSecurity:
    made = ListenerSecurity(Listener("X", "", 1, "", 1, "SSL"), is_inter_broker=is_inter_broker)
    made.reload(of or properties(**more))
    return made


async def report_principal(connection: Connection, _: memoryview) -> list[Any]:
    return [framed(str(connection.principal).encode())]


@contextlib.asynccontextmanager
async def serving(
    answer: Any = report_principal, *, idle_ms: int = 0, **more: Any
) -> AsyncIterator[int]:
    port = free_port()
    server = SocketServer(
        max_frame_bytes=1 << 20,
        max_idle_ms=idle_ms,
        backlog=5,
        answer=answer,
        secure_listeners={"X": listener_security(**more)},
    )
    await server.listen((Listener("X", "127.0.0.1", port, "", port, "SSL"),), Resolver())
    try:
        yield port
    finally:
        await server.close()


def client(own: Issued | None = None, folder: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    if own is not None and folder is not None:
        context.load_cert_chain(pem_file(folder / "client.pem", own.key_pem(), own.pem))
    return context


async def ask(port: int, context: ssl.SSLContext, data: bytes = REQUEST) -> bytes:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    try:
        writer.write(data)
        return (await asyncio.wait_for(reader.read(1000), 10))[4:]
    finally:
        writer.close()


def test_certificate_names_the_principal_or_anonymous(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving() as port:
            assert await ask(port, client(ALICE, tmp_path)) == b"User:al"
            assert await ask(port, client()) == b"User:ANONYMOUS"

    run(scenario())


def test_untrusted_or_unmapped_client_is_rejected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving() as port:
            for stranger in (Authority().issue("al"), AUTHORITY.issue("nobody")):
                answer = b""
                with contextlib.suppress(ssl.SSLError, ConnectionError):
                    answer = await ask(port, client(stranger, tmp_path))
                assert answer == b""
            assert await ask(port, client()) == b"User:ANONYMOUS"

    run(scenario())
    assert "No rules apply to CN=nobody" in caplog.text
    assert "SSL handshake failed" in caplog.text


@pytest.mark.parametrize(
    ("version", "offered"), [("TLSv1.2", "TLSv1.2"), ("TLSv1.3", "TLSv1.3"), ("TLSv1.2", "")]
)
def test_only_enabled_tls_versions_are_accepted(version: str, offered: str) -> None:
    context = client()
    highest = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
    tls_version = highest[offered] if offered else ssl.TLSVersion.TLSv1_3
    context.minimum_version = context.maximum_version = tls_version

    async def scenario() -> None:
        async with serving(ssl_enabled_protocols=version) as port:
            if tls_version == highest[version]:
                assert await ask(port, context) == b"User:ANONYMOUS"
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    await ask(port, context)

    run(scenario())


def test_stalled_or_malformed_handshake_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving(idle_ms=1_000) as port:
            for begin in (b"", b"\x16\x03\x01\x02\x00\x01"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(begin)
                assert await asyncio.wait_for(reader.read(), 10) == b""
                writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST * 5)
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), 10)
            assert await ask(port, client()) == b"User:ANONYMOUS"

    run(scenario())
    assert "wrong version number" in caplog.text


def send_and_end(port: int, data: bytes, *, says_so: bool) -> None:
    """Send everything in one segment; close by close_notify, or by TCP only."""
    come, gone = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client().wrap_bio(come, gone, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                break
            sock.sendall(gone.read())
            come.write(sock.recv(10_000))
        tls.write(data)
        if says_so:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.unwrap()
        sock.sendall(gone.read())
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(10_000):
            pass


@pytest.mark.parametrize("says_so", [True, False])
def test_requests_before_the_end_are_served(says_so: bool) -> None:
    """A producer with acks=0 sends, and closes at once."""

    async def scenario() -> None:
        frames = []

        async def silent(connection: Connection, frame: memoryview) -> None:
            while not connection._is_over:
                await asyncio.sleep(0)
            frames.append(frame[0])

        async with serving(silent) as port, asyncio.timeout(10):
            data = b"".join(framed(bytes([n])) for n in range(3))
            await asyncio.to_thread(send_and_end, port, data, says_so=says_so)
            assert frames == list(range(3))

    run(scenario())


def test_files_are_sent_as_fast_as_the_peer_reads(tmp_path: Path) -> None:
    """A stopped reader holds little memory, and later reads correct bytes."""
    data = bytes(range(256)) * 80_000
    file = Storage().open(tmp_path / "00.log", create=True)
    file.write_at([data], len(data), 0)
    waiting: list[int] = []

    async def answer(connection: Connection, _: memoryview) -> list[Any]:
        waiting.append(connection._transport.get_write_buffer_size())  # type: ignore[union-attr]
        return [len(data).to_bytes(4, "big"), file.lend(len(data), 0), b""]

    async def scenario() -> None:
        async with serving(answer) as port:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client(), server_hostname="localhost", limit=1 << 16
            )
            writer.write(REQUEST * 3)
            for _ in range(3):
                assert await reader.readexactly(4) == len(data).to_bytes(4, "big")
                assert await reader.readexactly(len(data)) == data
            writer.close()
        assert max(waiting) <= 3 * WRITE_HIGH_BYTES
        file.close()

    run(scenario())


def test_concurrent_requests_are_answered_in_order() -> None:
    async def echo(_: Connection, frame: memoryview) -> list[Any]:
        return [framed(bytes(frame))]

    async def scenario() -> None:
        async with serving(echo) as port:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client(), server_hostname="localhost"
            )
            for size in (1, 20_000, 300_000):
                frames = b"".join(framed(bytes([number]) * size) for number in range(40))
                sending = asyncio.create_task(_write(writer, frames))
                assert await reader.readexactly(len(frames)) == frames
                await sending
            writer.close()

    run(scenario())


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ssl_keystore_certificate_chain": ALICE.pem}, "TLS cannot be set up"),
        ({"ssl_cipher_suites": "TLS_NONSENSE"}, "TLS_NONSENSE is not known"),
        ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, "served all together"),
        ({"ssl_enabled_protocols": "SSLv3"}, "SSLv3"),
        ({"ssl_principal_mapping_rules": "nonsense"}, "Invalid rule"),
        ({"ssl_truststore_certificates": Authority().pem, "inter": "1"}, "can't connect"),
    ],
)
def test_invalid_settings_are_reported_before_serving(change: dict[str, str], why: str) -> None:
    is_inter_broker = bool(change.pop("inter", ""))
    with pytest.raises(ConfigError, match=why):
        listener_security(is_inter_broker=is_inter_broker, **change)


def test_cipher_is_selected_by_its_java_name() -> None:
    name = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"

    async def scenario() -> None:
        async with serving(ssl_cipher_suites=name) as port:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client(), server_hostname="localhost"
            )
            tls = writer.get_extra_info("ssl_object")
            assert tls.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
            writer.close()

    run(scenario())


@pytest.mark.parametrize(("bits", "signature"), [(1024, "SHA256withRSA"), (2048, "SHA1withRSA")])
def test_old_certificates_that_java_accepts_work(bits: int, signature: str, tmp_path: Path) -> None:
    keystore, trusted = java_chain(tmp_path, bits=bits, signature=signature)
    stores = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": keystore,
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": trusted,
    }
    context = ssl.create_default_context(cadata=trusted)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")

    async def scenario() -> None:
        async with serving(of=stores) as port:
            assert await ask(port, context) == b"User:ANONYMOUS"

    run(scenario())


@pytest.mark.parametrize("unknown", ["the curve of its key", "its signature"])
def test_trusted_certificate_of_unknown_kind_is_ignored(unknown: str) -> None:
    """Trust stores of operating systems contain such certificates."""
    known, strange = {
        "the curve of its key": ("2a8648ce3d030107", "2a8648ce3d030106"),
        "its signature": ("2a8648ce3d040302", "2a8648ce3d04037f"),
    }[unknown]
    der = ssl.PEM_cert_to_DER_cert(AUTHORITY.issue("of another kind").pem)
    other = ssl.DER_cert_to_PEM_cert(der.replace(bytes.fromhex(known), bytes.fromhex(strange)))

    async def scenario() -> None:
        async with serving(ssl_truststore_certificates=other + AUTHORITY.pem) as port:
            assert await ask(port, client()) == b"User:ANONYMOUS"

    run(scenario())


def test_sha1_root_does_not_lower_the_security_level(tmp_path: Path) -> None:
    _, root = java_chain(tmp_path, bits=2048, signature="SHA1withRSA")
    levels = {
        TlsMaterial(
            identity=None,
            trusted=(x509.load_pem_x509_certificate(pem.encode()),),
            client_auth="none",
            protocols=("TLSv1.2",),
            ciphers=(),
            checks_hostname=True,
        )
        .client_context()
        .security_level
        for pem in (root, AUTHORITY.pem)
    }
    assert len(levels) == 1


def test_certificate_with_another_name_is_no_replacement() -> None:
    standing = listener_security(is_inter_broker=True)
    other = AUTHORITY.issue("other", hosts=LOCAL)
    for_other_hosts = AUTHORITY.issue("broker", hosts=["elsewhere"])
    stranger = Authority().issue("broker", hosts=LOCAL)
    for issued, why in (
        (other, "DistinguishedName does not match"),
        (for_other_hosts, "SubjectAltNames do not match"),
        (stranger, "can't connect"),
    ):
        changed = properties(
            ssl_keystore_key=issued.key_pem(), ssl_keystore_certificate_chain=issued.pem
        )
        with pytest.raises(ConfigError, match=why):
            standing.check(changed)
    renewed = AUTHORITY.issue("broker", hosts=LOCAL)
    standing.check(
        properties(ssl_keystore_key=renewed.key_pem(), ssl_keystore_certificate_chain=renewed.pem)
    )


def test_connect_to_a_peer_without_handshake_times_out() -> None:
    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    async def scenario() -> None:
        port = free_port()
        server = await asyncio.start_server(silent, "127.0.0.1", port)
        channels = Channels(
            "b", Resolver(), listener_security(is_inter_broker=True), setup_timeout_ms=300
        )
        asked = channels.send(
            Endpoint(2, "127.0.0.1", port), ApiVersionsRequest(), 0, timeout_ms=3_600_000
        )
        with pytest.raises((ConnectionError, TimeoutError)):
            await asked
        channels.close()
        server.close()

    run(scenario())


def test_peer_certificate_must_have_its_host_name() -> None:
    async def answer(_: Connection, frame: memoryview) -> list[Any]:
        header = frame[4:8]
        return encode_response(18, 0, int.from_bytes(header, "big"), ApiVersionsResponse())

    async def scenario() -> None:
        async with serving(answer, ssl_principal_mapping_rules="DEFAULT") as port:
            ours = listener_security(is_inter_broker=True)
            channels = Channels("b", Resolver(), ours)
            request = ApiVersionsRequest()
            there = await channels.send(Endpoint(2, "localhost", port), request, 0, 20_000)
            assert there.error_code == 0
            channels.close()

    async def other_address() -> None:
        port = free_port()
        made = SocketServer(
            max_frame_bytes=1 << 20,
            max_idle_ms=0,
            backlog=5,
            answer=answer,
            secure_listeners={"X": listener_security()},
        )
        await made.listen((Listener("X", "127.0.0.2", port, "", port, "SSL"),), Resolver())
        channels = Channels("b", Resolver(), listener_security(is_inter_broker=True))
        with pytest.raises(ConnectionError, match="certificate verify failed"):
            await channels.send(Endpoint(3, "127.0.0.2", port), ApiVersionsRequest(), 0, 20_000)
        channels.close()
        await made.close()

    run(other_address())
    run(scenario())
