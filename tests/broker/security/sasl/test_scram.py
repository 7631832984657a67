from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

import pytest

from urteil.broker.security.principals import Principal
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange, Denied
from urteil.broker.security.sasl.scram import (
    Credential,
    Find,
    ScramExchange,
    ScramLogin,
    UserCredential,
    credential,
    credential_of_salted,
    parse_credential,
    user_of,
)

# RFC 7677, section 3
CLIENT_FIRST = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
OF_USER = credential("SCRAM-SHA-256", "pencil", salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))


def knowing(**users: Credential) -> Find:
    def find(name: str, by_token: bool) -> UserCredential | None:
        credential = None if by_token else users.get(name)
        return None if credential is None else UserCredential(credential, user_of(name))

    return find


def server(nonce: Callable[[], str] = lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0") -> ScramExchange:
    return ScramExchange("SCRAM-SHA-256", knowing(user=OF_USER), nonce)


def test_server_reproduces_the_example_of_the_rfc() -> None:
    exchange = server()
    assert exchange.step(CLIENT_FIRST.encode()).decode() == SERVER_FIRST
    assert not exchange.is_complete
    assert exchange.step(CLIENT_FINAL.encode()).decode() == SERVER_FINAL
    assert exchange.is_complete
    assert exchange.principal == Principal("User", "user")


def test_client_reproduces_the_example_of_the_rfc() -> None:
    login = ScramLogin(
        "SCRAM-SHA-256",
        {"username": "user", "password": "pencil"},
        lambda: "rOprNGfwEbeRWgbNEkqO",
    )
    assert login.step(None) == CLIENT_FIRST.encode()
    assert login.step(SERVER_FIRST.encode()) == CLIENT_FINAL.encode()
    assert login.step(SERVER_FINAL.encode()) is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_client_and_server_agree_for_every_name(mechanism: str) -> None:
    name = "a,b=c=2C ü"
    known = credential(mechanism, "pässword", iterations=5000)
    exchange = ScramExchange(mechanism, knowing(**{name: known}))
    login = ScramLogin(mechanism, {"username": name, "password": "pässword"})
    answer: bytes | None = None
    while (said := login.step(answer)) is not None:
        answer = exchange.step(said)
    assert exchange.is_complete
    assert exchange.principal.name == name


def test_wrong_proof_wrong_nonce_and_unknown_user_are_rejected() -> None:
    other = CLIENT_FINAL.replace("p=dHzb", "p=dHzc")
    for final, why in (
        (other, "Invalid client credentials"),
        (CLIENT_FINAL.replace("%hv", "%hw"), "Invalid client nonce"),
        ("c=biws,r=x", "final message format"),
        (CLIENT_FINAL[:-8], "Invalid"),
    ):
        exchange = server()
        exchange.step(CLIENT_FIRST.encode())
        with pytest.raises(BrokenExchange, match=why):
            exchange.step(final.encode())
        assert not exchange.is_complete
    with pytest.raises(BrokenExchange, match="Invalid user credentials"):
        server().step(b"n,,n=nobody,r=abc")


@pytest.mark.parametrize(
    "first",
    [
        "", "n=user,r=abc", "y,,n=user,r=abc", "p=tls-unique,,n=user,r=abc", "n,,r=abc",
        "n,,n=,r=abc", "n,,n=us=er,r=abc", "n,,n=user,r=", "n,,n=user,r=a\x7f", "n,,n=a\0b,r=abc",
    ],
)  # fmt: skip
def test_malformed_first_message_is_rejected(first: str) -> None:
    with pytest.raises(BrokenExchange):
        server().step(first.encode())


def test_other_authorization_id_is_rejected() -> None:
    with pytest.raises(Denied, match="authorization id"):
        server().step(b"n,a=admin,n=user,r=abc")
    assert server().step(b"n,a=user,n=user,r=abc")


def test_credential_with_few_iterations_is_rejected() -> None:
    weak = credential("SCRAM-SHA-256", "pencil", iterations=4095)
    exchange = ScramExchange("SCRAM-SHA-256", knowing(user=weak))
    with pytest.raises(BrokenExchange, match="Iterations 4095 is less than the minimum 4096"):
        exchange.step(CLIENT_FIRST.encode())


def test_token_is_looked_up_as_a_token() -> None:
    asked: list[tuple[str, bool]] = []

    def find(name: str, by_token: bool) -> UserCredential | None:
        asked.append((name, by_token))
        owner = Principal("User", "alice", token_authenticated=True)
        return UserCredential(OF_USER, owner, 12345.0) if by_token else None

    exchange = ScramExchange("SCRAM-SHA-256", find)
    options = {"username": "id-1", "password": "pencil", "tokenauth": "true"}
    login = ScramLogin("SCRAM-SHA-256", options)
    answer: bytes | None = None
    while (said := login.step(answer)) is not None:
        answer = exchange.step(said)
    assert asked == [("id-1", True)]
    assert exchange.principal.token_authenticated
    assert exchange.expires_at_ms == 12345.0


def test_client_detects_a_server_without_the_password() -> None:
    login = ScramLogin(
        "SCRAM-SHA-256", {"username": "user", "password": "pencil"}, lambda: "rOprNGfwEbeRWgbNEkqO"
    )
    login.step(None)
    login.step(SERVER_FIRST.encode())
    with pytest.raises(BrokenExchange, match="does not know"):
        login.step(b"v=AAAA")
    for first, why in (
        (SERVER_FIRST.replace("r=rO", "r=xO"), "first message"),
        (SERVER_FIRST.replace("4096", "1"), "fewer than 4096"),
        (SERVER_FIRST.replace("4096", "1000000"), "first message"),  # a second or more of hashing
    ):
        login = ScramLogin("SCRAM-SHA-256", {"password": "p"}, lambda: "rOprNGfwEbeRWgbNEkqO")
        login.step(None)
        with pytest.raises(BrokenExchange, match=why):
            login.step(first.encode())


def test_stored_credential_equals_apache_kafkas() -> None:
    text = OF_USER.text()
    assert text.startswith("salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=")
    assert text.endswith(",iterations=4096")
    assert parse_credential(text) == OF_USER
    assert "key" not in repr(OF_USER)
    for bad in ("", "salt=AA==", text.replace("iterations=4096", "iterations=many")):
        with pytest.raises(ValueError, match="no SCRAM credential") as refused:
            parse_credential(bad)
        assert "W22" not in str(refused.value)


def test_salted_password_gives_the_same_credential() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", OF_USER.salt, 4096)
    assert credential_of_salted("SCRAM-SHA-256", salted, OF_USER.salt, 4096) == OF_USER
