from __future__ import annotations

import pytest

from urteil.broker.security.principals import ANONYMOUS, Principal, parse_principal


def test_a_principal_is_written_and_read_as_type_and_name() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert parse_principal("User:CN=alice,O=a:b") == Principal("User", "CN=alice,O=a:b")


@pytest.mark.parametrize("text", ["", "User", "User:", ":alice"])
def test_what_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="principalType:principalName"):
        parse_principal(text)


def test_one_who_came_by_a_token_is_the_same_one() -> None:
    by_token = Principal("User", "alice", token_authenticated=True)
    assert by_token == Principal("User", "alice")
    assert hash(by_token) == hash(Principal("User", "alice"))
