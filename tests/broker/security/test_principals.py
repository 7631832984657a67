from __future__ import annotations

import pytest

from urteil.broker.security.principals import ANONYMOUS, Principal, parse_principal


def test_principal_is_formatted_and_parsed_as_type_and_name() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert parse_principal("User:CN=alice,O=a:b") == Principal("User", "CN=alice,O=a:b")


@pytest.mark.parametrize("text", ["", "User", "User:", ":alice"])
def test_malformed_principal_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="principalType:principalName"):
        parse_principal(text)


def test_token_authentication_does_not_change_identity() -> None:
    by_token = Principal("User", "alice", token_authenticated=True)
    assert by_token == Principal("User", "alice")
    assert hash(by_token) == hash(Principal("User", "alice"))
