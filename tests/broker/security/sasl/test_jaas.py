from __future__ import annotations

import pytest

from urteil.broker.security.sanitized_names import desanitize, sanitize
from urteil.broker.security.sasl.jaas import parse_jaas
from urteil.broker.security.sasl.plain import PlainExchange, PlainLogin
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange, Denied


def test_login_module_has_a_name_and_options() -> None:
    module = parse_jaas(
        r"""org.apache.kafka.common.security.plain.PlainLoginModule required // for people
            username="admin" /* not
            a user */ password='it''s' user_a-b="with \"quotes\" and \\ and ; and \041"
            keyTab=file;""".replace("'it''s'", "'its'")
    )
    assert module.name == "org.apache.kafka.common.security.plain.PlainLoginModule"
    assert module.options == {
        "username": "admin",
        "password": "its",
        "user_a-b": 'with "quotes" and \\ and ; and !',
        "keyTab": "file",
    }
    assert "its" not in repr(module)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Login module not specified"),
        ("a.B", "control flag not specified"),
        ("a.B sometimes;", "control flag is not available"),
        ("a.B required", "not terminated by semi-colon"),
        ('a.B required password="Secret"', "not terminated by semi-colon"),
        ("a.B required password;", "Value not specified for key 'password'"),
        ("a.B required password=;", "Value not specified for key 'password'"),
        ('a.B required "Secret" x;', "Value not specified for key"),
        ("a.B required; a.C required;", "contains 2 login modules"),
    ],
)
def test_malformed_modules_are_rejected_without_secrets(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        parse_jaas(text)
    assert "Secret" not in str(refused.value)


USERS = {"username": "alice", "password": "a-Secret", "user_alice": "a-Secret", "user_bob": "b"}


def test_plain_authenticates_users_of_the_module() -> None:
    exchange = PlainExchange(USERS)
    login = PlainLogin(USERS)
    said = login.step(None)
    assert said == b"\0alice\0a-Secret"
    assert exchange.step(said) == b""
    assert exchange.is_complete
    assert str(exchange.principal) == "User:alice"
    assert login.step(b"") is None
    assert PlainExchange(USERS).step(b"bob\0bob\0b") == b""


@pytest.mark.parametrize(
    ("message", "error", "why"),
    [
        (b"\0alice\0wrong", Denied, "Invalid username or password"),
        (b"\0alice\0", BrokenExchange, "password not specified"),
        (b"\0\0x", BrokenExchange, "username not specified"),
        (b"\0carol\0x", Denied, "Invalid username or password"),
        (b"bob\0alice\0a-Secret", Denied, "authorization id that is different"),
        (b"", BrokenExchange, "expected 3 tokens, got 1"),
        (b"\0a\0b\0c", BrokenExchange, "expected 3 tokens, got 4"),
        (b"\0a\0\xff", BrokenExchange, "UTF-8"),
    ],
)
def test_plain_rejects_invalid_messages(message: bytes, error: type[Exception], why: str) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises(error, match=why):
        exchange.step(message)
    assert not exchange.is_complete


def test_sanitized_names_equal_javas() -> None:
    assert sanitize("a b*c+d~e/f.g-h_i=ü") == "a%20b%2Ac%2Bd%7Ee%2Ff.g-h_i%3D%C3%BC"
    assert desanitize(sanitize("a b*c+d~e/f,")) == "a b*c+d~e/f,"
