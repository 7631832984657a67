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
        found = None if by_token else users.get(name)
        return None if found is None else UserCredential(found, user_of(name))

    return find


def server(nonce: Callable[[], str] = lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0") -> ScramExchange:
    return ScramExchange("SCRAM-SHA-256", knowing(user=OF_USER), nonce)


def test_the_server_says_what_the_rfc_says() -> None:
    exchange = server()
    assert exchange.step(CLIENT_FIRST.encode()).decode() == SERVER_FIRST
    assert not exchange.is_complete
    assert exchange.step(CLIENT_FINAL.encode()).decode() == SERVER_FINAL
    assert exchange.is_complete
    assert exchange.principal == Principal("User", "user")


def test_the_client_says_what_the_rfc_says() -> None:
    login = ScramLogin(
        "SCRAM-SHA-256",
        {"username": "user", "password": "pencil"},
        lambda: "rOprNGfwEbeRWgbNEkqO",
    )
    assert login.step(None) == CLIENT_FIRST.encode()
    assert login.step(SERVER_FIRST.encode()) == CLIENT_FINAL.encode()
    assert login.step(SERVER_FINAL.encode()) is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_both_sides_agree_whatever_the_name(mechanism: str) -> None:
    name = "a,b=c=2C ü"
    known = credential(mechanism, "pässword", iterations=5000)
    exchange = ScramExchange(mechanism, knowing(**{name: known}))
    login = ScramLogin(mechanism, {"username": name, "password": "pässword"})
    answer: bytes | None = None
    while (said := login.step(answer)) is not None:
        answer = exchange.step(said)
    assert exchange.is_complete
    assert exchange.principal.name == name


def test_a_wrong_proof_a_wrong_nonce_and_an_unknown_user_are_refused() -> None:
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
def test_what_is_no_first_message_is_refused(first: str) -> None:
    with pytest.raises(BrokenExchange):
        server().step(first.encode())


def test_another_one_may_not_be_asked_for() -> None:
    with pytest.raises(Denied, match="authorization id"):
        server().step(b"n,a=admin,n=user,r=abc")
    assert server().step(b"n,a=user,n=user,r=abc")


def test_a_credential_of_few_iterations_is_refused() -> None:
    weak = credential("SCRAM-SHA-256", "pencil", iterations=4095)
    exchange = ScramExchange("SCRAM-SHA-256", knowing(user=weak))
    with pytest.raises(BrokenExchange, match="Iterations 4095 is less than the minimum 4096"):
        exchange.step(CLIENT_FIRST.encode())


def test_a_token_is_looked_up_as_one() -> None:
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


def test_the_client_finds_out_a_server_that_does_not_know_the_password() -> None:
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


def test_a_credential_lies_in_zookeeper_as_apache_kafka_writes_it() -> None:
    text = OF_USER.text()
    assert text.startswith("salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=")
    assert text.endswith(",iterations=4096")
    assert parse_credential(text) == OF_USER
    assert "key" not in repr(OF_USER)
    for bad in ("", "salt=AA==", text.replace("iterations=4096", "iterations=many")):
        with pytest.raises(ValueError, match="no SCRAM credential") as refused:
            parse_credential(bad)
        assert "W22" not in str(refused.value)


def test_a_salted_password_makes_the_same_credential() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", OF_USER.salt, 4096)
    assert credential_of_salted("SCRAM-SHA-256", salted, OF_USER.salt, 4096) == OF_USER
