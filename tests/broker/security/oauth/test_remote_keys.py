"""Key sets by http and https, from a local server."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import BadStatusLine
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.broker.security.oauth.test_oauthbearer import NOW_S, key_set, signed
from tests.broker.security.tls.certificates import LOCAL, pem_file
from tests.waiting import until
from urteil.broker.config.listener_overrides import ListenerSettings
from urteil.broker.config.values import ConfigError
from urteil.broker.net.sasl_mechanisms import load_mechanisms
from urteil.broker.security.oauth.json_web_tokens import SignedValidator
from urteil.broker.security.oauth.oauthbearer import TokenRefused
from urteil.broker.security.oauth.remote_keys import MAX_BYTES, RemoteKeys, fetch
from urteil.harness.cluster.certificates import Authority

NOTHING = '{"keys": []}'


class Server:
    """Answers every GET with `text` and counts requests."""

    def __init__(self, url: str) -> None:
        self.url, self.text, self.status, self.asked = url, key_set(), 200, 0


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked += 1
            self.send_response(server.status)
            self.end_headers()
            self.wfile.write(server.text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Not to the test's output."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        http.socket = context.wrap_socket(http.socket, server_side=True)
    scheme = "http" if context is None else "https"
    server = Server(f"{scheme}://localhost:{http.server_port}/keys")
    thread = threading.Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def takes(keys: RemoteKeys, kid: str = "one") -> bool:
    validator = SignedValidator(
        verify=keys.verify, now_ms=lambda: NOW_S * 1000, skew_ms=0, subject_claim="sub",
        audiences=None, issuer=None,
    )  # fmt: skip
    try:
        validator.validate(signed("RS256", kid))
    except TokenRefused:
        return False
    return True


@contextmanager
def remote(server: Server, refresh_s: float = 3600.0) -> Iterator[RemoteKeys]:
    keys = RemoteKeys(lambda: fetch(server.url, None), refresh_s, 0.02, 0.1)
    try:
        yield keys
    finally:
        keys.close()


def test_key_set_is_fetched_periodically() -> None:
    with serving() as server, remote(server, refresh_s=0.05) as keys:
        assert takes(keys)
        server.text = NOTHING
        until(lambda: not takes(keys), "the new set")


def test_unknown_key_causes_a_rate_limited_fetch() -> None:
    with serving() as server:
        server.text = NOTHING
        with remote(server) as keys:
            server.text = key_set()
            _asks_again(server, keys)


def _asks_again(server: Server, keys: RemoteKeys) -> None:
    assert not takes(keys)
    until(lambda: takes(keys), "the new set")
    asked = server.asked
    for number in range(40):
        takes(keys, f"made up {number}")
    until(lambda: server.asked > asked, "another one")
    assert server.asked < asked + 20


def test_failed_fetch_is_retried_and_old_keys_stay_valid(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving() as server, remote(server, refresh_s=0.05) as keys:
        server.status = 503
        until(lambda: "cannot be fetched" in caplog.text, "a complaint")
        assert takes(keys)
        server.status, server.text = 200, NOTHING
        until(lambda: not takes(keys), "the new set")


@pytest.mark.parametrize(
    "wrong",
    [BadStatusLine("what?"), '{"keys": [{"kty": "EC", "crv": []}]}', "[" * 100_000, "no JSON"],
    ids=["no HTTP", "no curve", "deep", "no JSON"],
)
def test_malformed_response_does_not_stop_fetching(wrong: str | Exception) -> None:
    answers = iter([key_set(), wrong])

    def answer() -> str:
        given = next(answers, NOTHING)
        if isinstance(given, Exception):
            raise given
        return given

    keys = RemoteKeys(answer, 0.02, 0.02, 0.1)
    until(lambda: not takes(keys), "the last set")
    keys.close()


def test_malformed_http_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/keys"
        thread = threading.Thread(target=_answer_nonsense, args=(listening,))
        thread.start()
        with pytest.raises(OSError, match="BadStatusLine"):
            fetch(url, None)
        thread.join()


def _answer_nonsense(listening: socket.socket) -> None:
    peer, _ = listening.accept()
    with peer:
        peer.recv(4096)
        peer.sendall(b"what?\r\n\r\n")


def test_https_uses_the_trust_file(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("keys", hosts=LOCAL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem_file(tmp_path / "server.pem", issued.key_pem(), issued.pem))
    with serving(context) as server:
        trust = str(pem_file(tmp_path / "trust.pem", authority.pem))
        assert '"keys"' in fetch(server.url, trust)
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            fetch(server.url, None)


def offer(url: str) -> Any:
    jaas = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    properties = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.server.callback.handler.class": "x.OAuthBearerValidatorCallbackHandler",
        "listener.name.l.oauthbearer.sasl.jaas.config": jaas,
    }
    return load_mechanisms(ListenerSettings(properties, "L"), None, lambda: NOW_S * 1000)


def test_listener_reads_keys_from_a_url() -> None:
    with serving() as server:
        validator = offer(server.url).validator
        assert validator.validate(signed("RS256", "one")).subject == "alice"
        assert offer(server.url).validator.verify == validator.verify
        assert server.asked == 1


@pytest.mark.parametrize("url", ["ftp://x/keys", "", "http://localhost:1/keys", "file:///nowhere"])
def test_missing_key_set_is_reported(url: str) -> None:
    with pytest.raises(ConfigError, match=r"jwks\.endpoint\.url"):
        offer(url)


def test_endless_key_set_is_limited() -> None:
    with serving() as server:
        server.text = " " * (MAX_BYTES + 1)
        with pytest.raises(ConfigError, match="more than"):
            offer(server.url)
