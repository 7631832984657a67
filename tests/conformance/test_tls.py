"""TLS listeners of both clusters answer alike."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.broker.security.tls.certificates import pem_file
from tests.conformance.pair import Pair
from tests.conformance.sasl import MECHANISMS, PORTS, SECRET, STRICT, TLS, SaslSide, Talk
from tests.conformance.side import ANSWER_TIMEOUT_S, CLOSED, Side
from urteil.broker.wire.messages import (
    ApiVersionsRequest,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
)
from urteil.harness.cluster.certificates import Authority

Name = Sequence[tuple[x509.ObjectIdentifier, str]]
OTHERS = Authority("nobody's CA")
REFUSED = "refused"
CN, OU, O_ = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
)  # fmt: skip


class TlsTalk(Talk):
    """As `Talk`, over TLS; `said` is its version, or REFUSED."""

    def __init__(self, side: Side, listener: str, context: ssl.SSLContext, name: str = "") -> None:
        super().__init__(side, listener)
        assert isinstance(side, SaslSide)
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=name or side.host)
            self.said = self._socket.version() or ""
        except OSError:
            self.said = REFUSED

    def ask(self, message: Any, version: int) -> Any:
        if self.said == REFUSED:
            return CLOSED
        try:
            return super().ask(message, version)
        except OSError:  # with TLS 1.3 a client hears after its handshake that it is refused
            return CLOSED


def context_of(side: Side, own: tuple[Authority, Name] | None = None, folder: Any = None) -> Any:
    assert isinstance(side, SaslSide)
    context = ssl.create_default_context(cadata=side.authority.pem)
    context.check_hostname = False
    if own is not None:
        issued = own[0].issue(own[1])
        file = folder / f"{side.name}.pem"
        context.load_cert_chain(pem_file(file, issued.key_pem(), issued.pem))
    return context


def cluster_of(talk: TlsTalk) -> bool:
    return talk.ask(ApiVersionsRequest(), 0) != CLOSED


VERSIONS = ("TLSv1", "TLSv1_1", "TLSv1_2", "TLSv1_3")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_versions_are_accepted_alike(sasl: Pair, version: str) -> None:
    def ask(side: Side) -> Any:
        context = context_of(side)
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        context.set_ciphers("ALL:@SECLEVEL=0")
        with TlsTalk(side, TLS, context) as talk:
            return talk.said, cluster_of(talk)

    served = (version.replace("_", "."), True)
    assert sasl.assert_same(ask) == (served if version in VERSIONS[2:] else (REFUSED, False))


CIPHERS = (
    "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-GCM-SHA256", "NULL-SHA256:eNULL",
)  # fmt: skip


@pytest.mark.parametrize("cipher", CIPHERS)
def test_ciphers_of_tls_1_2_are_accepted_alike(sasl: Pair, cipher: str) -> None:
    def ask(side: Side) -> Any:
        context = context_of(side)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(f"{cipher}:@SECLEVEL=0")
        with TlsTalk(side, TLS, context) as talk:
            return talk.said, cluster_of(talk)

    served = "ECDSA" in cipher  # as the brokers' key is
    assert sasl.assert_same(ask) == (("TLSv1.2", True) if served else (REFUSED, False))


@pytest.mark.parametrize("name", ["localhost", "somebody.example.com"])
def test_any_server_name_is_accepted(sasl: Pair, name: str) -> None:
    def ask(side: Side) -> Any:
        with TlsTalk(side, TLS, context_of(side), name) as talk:
            return talk.said, cluster_of(talk)

    assert sasl.assert_same(ask) == ("TLSv1.3", True)


NAMES: dict[str, Name] = {
    "by a rule": [(OU, "people"), (CN, "al")],
    "by no rule": [(OU, "others"), (CN, "al")],
    "signs": [(O_, "Acme, Inc"), (CN, 'a+b "q" <x>;#=\\')],
    "spaces": [(CN, " a  b ")],
    "letters": [(O_, "Größe"), (CN, "日本")],
    "many parts": [
        (NameOID.COUNTRY_NAME, "DE"), (NameOID.STATE_OR_PROVINCE_NAME, "Berlin"),
        (NameOID.LOCALITY_NAME, "Mitte"), (O_, "Acme"), (OU, "one"), (OU, "two"),
        (NameOID.DOMAIN_COMPONENT, "example"), (NameOID.USER_ID, "u1"),
        (NameOID.EMAIL_ADDRESS, "a@b.c"), (NameOID.SERIAL_NUMBER, "17"), (NameOID.TITLE, "Dr"),
        (CN, "al"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMES)
def test_principal_of_a_certificate_is_the_same(sasl: Pair, tmp_path: Path, kind: str) -> None:
    """As the owner of a token that it asks for."""

    def ask(side: Side) -> Any:
        assert isinstance(side, SaslSide)
        with TlsTalk(
            side, STRICT, context_of(side, (side.authority, NAMES[kind]), tmp_path)
        ) as talk:
            made = talk.ask(CreateDelegationTokenRequest(max_lifetime_ms=1000), 3)
            return made["error_code"], made["principal_type"], made["principal_name"]

    assert sasl.assert_same(ask)[0] == "NONE"


@pytest.mark.parametrize("listener", [TLS, STRICT])
@pytest.mark.parametrize("version", VERSIONS[2:])
@pytest.mark.parametrize("own", ["none", "another authority's", "good"])
def test_client_certificates_are_accepted_alike(
    sasl: Pair, tmp_path: Path, listener: str, version: str, own: str
) -> None:
    def ask(side: Side) -> Any:
        assert isinstance(side, SaslSide)
        authority = side.authority if own == "good" else OTHERS
        shown = None if own == "none" else (authority, [(CN, "al")])
        context = context_of(side, shown, tmp_path)
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        with TlsTalk(side, listener, context) as talk:
            owners = DescribeDelegationTokenRequest(owners=[])
            return cluster_of(talk), talk.ask(owners, 3)

    came, _ = sasl.assert_same(ask)
    assert came is (own == "good" or (own == "none" and listener == TLS))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("password", ["the right one", "wrong"])
def test_passwords_within_tls_are_answered_alike(sasl: Pair, mechanism: str, password: str) -> None:
    def ask(side: Side) -> Any:
        with TlsTalk(side, SECRET, context_of(side)) as talk:
            last = talk.log_in(mechanism, password=password if password == "wrong" else "")
            made = talk.ask(CreateDelegationTokenRequest(max_lifetime_ms=1000), 3)
            who = made if made == CLOSED else (made["error_code"], made["principal_name"])
            return talk.said, last, who

    assert sasl.assert_same(ask)[2] == (CLOSED if password == "wrong" else ("NONE", "alice"))


def test_request_within_tls_before_authentication_is_unanswered(sasl: Pair) -> None:
    def ask(side: Side) -> Any:
        with TlsTalk(side, SECRET, context_of(side)) as talk:
            return talk.said, talk.ask(DescribeDelegationTokenRequest(owners=[]), 3)

    assert sasl.assert_same(ask) == ("TLSv1.3", CLOSED)


GARBAGE = {
    "no TLS": bytes.fromhex("0000000d0012000000000001000361626300"),
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": bytes(64),
    "a record of another version": bytes.fromhex("1609990005") + bytes(5),
    "a handshake cut short": bytes.fromhex("16030100ff01") + bytes(20),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_invalid_handshake_closes_the_connection(sasl: Pair, kind: str) -> None:
    """Whether an alert says why or not."""

    def ask(side: Side) -> str:
        assert isinstance(side, SaslSide)
        with socket.create_connection((side.host, PORTS[TLS]), ANSWER_TIMEOUT_S) as raw:
            raw.sendall(GARBAGE[kind])
            raw.shutdown(socket.SHUT_WR)
            answers = b""
            try:
                while more := raw.recv(1000):
                    answers += more
            except ConnectionError:
                pass
            return "an alert or nothing" if answers[:1] in (b"", b"\x15") else repr(answers)

    assert sasl.assert_same(ask) == "an alert or nothing"
