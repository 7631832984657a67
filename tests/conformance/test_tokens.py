"""Delegation tokens of both clusters."""

from __future__ import annotations

import base64
import hmac
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.guarded import acl
from tests.conformance.kafka_tools import tool
from tests.conformance.pair import Pair
from tests.conformance.sasl import MASTER_KEY, PASSWORDS, PORTS, USERS, Talk
from tests.conformance.side import CLOSED, Side
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.messages import (
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    MetadataRequest,
    RenewDelegationTokenRequest,
)

TOOL = "org.apache.kafka.tools.DelegationTokenCommand"
DAY_MS = 86_400_000
LARGEST = 2**63 - 1
TOLERANCE_MS = 20_000
Renewers = CreateDelegationTokenRequest.CreatableRenewers
Owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner


class Visitor(Talk):
    """Logged in by SCRAM, as a user or by a token."""

    def __init__(self, side: Side, user: str = "alice", token: Any = None) -> None:
        super().__init__(side)
        if token is None:
            self.log_in("SCRAM-SHA-512", user)
        else:
            self.answer = self.by_token(token)

    def by_token(
        self, token: Any, mechanism: str = "SCRAM-SHA-256", tokenauth: str = "true"
    ) -> Any:
        password = base64.b64encode(token["hmac"]).decode()
        return self.log_in(mechanism, token["token_id"], password, tokenauth=tokenauth)

    def create(self, version: int = 3, **more: Any) -> Any:
        return self.ask(CreateDelegationTokenRequest(**{"max_lifetime_ms": -1, **more}), version)

    def renew(self, token: Any, period_ms: int = -1, version: int = 2) -> Any:
        asked = RenewDelegationTokenRequest(hmac=token["hmac"], renew_period_ms=period_ms)
        return ending(self.ask(asked, version))

    def expire(self, token: Any, period_ms: int = -1, version: int = 2) -> Any:
        asked = ExpireDelegationTokenRequest(hmac=token["hmac"], expiry_time_period_ms=period_ms)
        return ending(self.ask(asked, version))

    def describe(self, owners: list[str] | None, version: int = 3) -> Any:
        asked = None if owners is None else [
            Owner(principal_type=kind, principal_name=name)
            for kind, _, name in (owner.partition(":") for owner in owners)
        ]  # fmt: skip
        return self.ask(DescribeDelegationTokenRequest(owners=asked), version)


def round_duration(at_ms: int, from_ms: int) -> Any:
    """How long after another time, but for what both take to answer."""
    if at_ms == -1:
        return at_ms
    return round((at_ms - from_ms) / TOLERANCE_MS) * TOLERANCE_MS


def ending(answer: Any) -> Any:
    if answer == CLOSED:
        return answer
    now_ms = int(time.time() * 1000)
    return answer | {"expiry_timestamp_ms": round_duration(answer["expiry_timestamp_ms"], now_ms)}


def comparable(answer: Any) -> Any:
    """A new token without what is each cluster's own."""
    if answer == CLOSED or answer["error_code"] != "NONE":
        return answer
    issued_ms = answer["issue_timestamp_ms"]
    known = answer["token_id"].encode()
    return answer | {
        "issue_timestamp_ms": round_duration(issued_ms, int(time.time() * 1000)),
        "expiry_timestamp_ms": answer["expiry_timestamp_ms"] - issued_ms,
        "max_timestamp_ms": answer["max_timestamp_ms"] - issued_ms,
        "token_id": len(known),
        "hmac": answer["hmac"] == hmac.digest(MASTER_KEY.encode(), known, "sha512"),
    }


@pytest.mark.parametrize("version", range(4))
def test_token_is_created_at_every_version(sasl: Pair, version: int) -> None:
    def ask(side: Side) -> Any:
        with Visitor(side) as alice:
            return comparable(alice.create(version))

    assert sasl.assert_same(ask)["hmac"] is True


MADE: dict[str, dict[str, Any]] = {
    "of 0 ms": {"max_lifetime_ms": 0},
    "of a second": {"max_lifetime_ms": 1000},
    "of eight days": {"max_lifetime_ms": 8 * DAY_MS},
    "of all time": {"max_lifetime_ms": LARGEST},
    "of no time": {"max_lifetime_ms": -LARGEST - 1},
    "with renewers": {"renewers": [("User", "bob"), ("User", "bob"), ("User", "carol, a=b*~")]},
    "with a group to renew": {"renewers": [("User", "bob"), ("Group", "bob")]},
    "with nobody to renew": {"renewers": [("User", ""), ("", "")]},
    "for oneself": {"owner_principal_type": "User", "owner_principal_name": "alice"},
    "for another": {"owner_principal_type": "User", "owner_principal_name": "carol"},
    "for a group": {"owner_principal_type": "Group", "owner_principal_name": "alice"},
    "for a name without a type": {"owner_principal_name": "alice"},
    "for no name": {"owner_principal_type": "Group", "owner_principal_name": ""},
}


@pytest.mark.parametrize("kind", MADE)
def test_token_options_are_answered_alike(sasl: Pair, kind: str) -> None:
    more = dict(MADE[kind])
    if "renewers" in more:
        more["renewers"] = [
            Renewers(principal_type=type, principal_name=name) for type, name in more["renewers"]
        ]

    def ask(side: Side) -> Any:
        with Visitor(side) as alice:
            return comparable(alice.create(**more))

    sasl.assert_same(ask)


def test_token_for_another_owner_requires_a_right(sasl: Pair) -> None:
    """Once somebody may, who was not named may not."""

    def ask(side: Side) -> Any:
        for_dave = {"owner_principal_type": "User", "owner_principal_name": "dave"}
        _grant(side, ResourceType.USER, "User:dave", Operation.CREATE_TOKENS, "User:alice")
        with Visitor(side) as alice, Visitor(side, "bob") as bob:
            made = alice.create(**for_dave)
            allowed, refused = comparable(made), comparable(bob.create(**for_dave))
            with Visitor(side, token=made) as dave:
                came = dave.answer["error_code"]
            return allowed, refused, came, alice.renew(made), bob.renew(made)

    allowed, refused, *_ = sasl.assert_same(ask)
    errors = allowed["error_code"], refused["error_code"]
    assert errors == ("NONE", "DELEGATION_TOKEN_AUTHORIZATION_FAILED")


def _grant(side: Side, type: ResourceType, name: str, operation: Operation, who: str) -> None:
    binding = acl(type, name, operation, principal=who, host="*")
    answer = side.get(CreateAclsRequest(creations=[binding]), 3)
    assert [result.error_code for result in answer.results] == [0], answer


def test_tokens_are_stored_alike(sasl: Pair) -> None:
    """The nodes byte for byte, but for ids and times."""

    def ask(side: Side) -> Any:
        with Visitor(side) as alice:
            names = ("bob", "carol, a=b*~")
            renewers = [Renewers(principal_type="User", principal_name=name) for name in names]
            token = alice.create(renewers=renewers)
        path = f"/delegation_token/tokens/{token['token_id']}"
        with side.znodes() as zk:
            kept = zk.get(path)[0].decode()
            notices = sorted(zk.get_children("/delegation_token/token_changes"))
            last = zk.get(f"/delegation_token/token_changes/{notices[-1]}")[0].decode()
            both = sorted(zk.get_children("/delegation_token"))
        kept = re.sub(r"\d{13}", "TIME", kept.replace(token["token_id"], "ID")).split(",")
        return kept, last == token["token_id"], re.sub(r"\d", "0", notices[-1]), both

    sasl.assert_same(ask)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_login_by_token_is_accepted(sasl: Pair, mechanism: str) -> None:
    def ask(side: Side) -> Any:
        with Visitor(side) as alice, Talk(side) as comes:
            token = alice.create()
            password = base64.b64encode(token["hmac"]).decode()
            came = comes.log_in(mechanism, token["token_id"], password, tokenauth="true")
            came["session_lifetime_ms"] = round_duration(came["session_lifetime_ms"], 0)
            return came, comes.ask(MetadataRequest(topics=[]), 1) != CLOSED

    came, served = sasl.assert_same(ask)
    assert (came["session_lifetime_ms"], served) == (DAY_MS, True)


@pytest.mark.parametrize("how", ["another password", "no tokenauth", "tokenauth=TRUE", "no token"])
def test_login_by_wrong_token_is_rejected_alike(sasl: Pair, how: str) -> None:
    def ask(side: Side) -> Any:
        with Visitor(side) as alice, Talk(side) as comes:
            token = alice.create()
            shown = token | ({"hmac": b"x" * 64} if how == "another password" else {})
            shown |= {"token_id": "alice"} if how == "no token" else {}
            password = base64.b64encode(shown["hmac"]).decode()
            tokenauth = "" if how == "no tokenauth" else "TRUE" if "TRUE" in how else "true"
            came = comes.log_in("SCRAM-SHA-256", shown["token_id"], password, tokenauth=tokenauth)
            came["session_lifetime_ms"] = round_duration(came["session_lifetime_ms"], 0)
            return came

    sasl.assert_same(ask)


def test_token_session_may_not_manage_tokens(sasl: Pair) -> None:
    def ask(side: Side) -> Any:
        with Visitor(side) as alice:
            token = alice.create()
        with Visitor(side, token=token) as again:
            return (
                [comparable(again.create(version)) for version in range(4)],
                [again.renew(token, version=version) for version in range(3)],
                [again.expire(token, version=version) for version in range(3)],
                [again.describe(None, version) for version in range(4)],
            )

    made, *_ = sasl.assert_same(ask)
    assert made[0]["error_code"] == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"


PERIODS = (-1, 0, 60_000, 30 * DAY_MS, LARGEST, -LARGEST - 1)


@pytest.mark.parametrize("period_ms", PERIODS)
@pytest.mark.parametrize("act", ["renew", "expire"])
def test_tokens_are_renewed_and_expired_alike(sasl: Pair, act: str, period_ms: int) -> None:
    """By who owns it, who may renew it, and who may not; then once more, a moment later."""

    def ask(side: Side) -> Any:
        bob_too = [Renewers(principal_type="User", principal_name="bob")]
        answers = []
        with Visitor(side) as alice, Visitor(side, "bob") as bob:
            for renewers, by in (([], alice), (bob_too, bob), ([], bob)):
                token = alice.create(renewers=renewers)
                answers.append(getattr(by, act)(token, period_ms))
                time.sleep(0.003)  # what ends at this moment is over at the next one
                answers.append(by.renew(token))
                answers.append(len(_token_of(alice, token)))
        return answers

    sasl.assert_same(ask)


def _token_of(talk: Visitor, token: Any) -> list[Any]:
    tokens = talk.describe(["User:alice"])["tokens"]
    return [row for row in tokens if row["token_id"] == token["token_id"]]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("password", [b"", b"x", b"x" * 64])
def test_unknown_token_password_is_answered_alike(
    sasl: Pair, password: bytes, version: int
) -> None:
    def ask(side: Side) -> Any:
        with Visitor(side) as alice:
            none = {"hmac": password}
            return alice.renew(none, version=version), alice.expire(none, version=version)

    sasl.assert_same(ask)


@pytest.mark.thorough
def test_token_tool_prints_the_same(sasl: Pair, tmp_path: Path) -> None:
    """DelegationTokenCommand of Apache Kafka 3.9.1, which logs in by SCRAM."""
    both = {side.name: side for side in (sasl.ours, sasl.theirs)}
    with ThreadPoolExecutor(len(both)) as pool:
        outputs = list(
            pool.map(lambda side: _tool_output(side, tmp_path / side.name), both.values())
        )
    assert outputs[0] == outputs[1]
    assert "User:bob" in outputs[0][0]


def _tool_output(side: Side, config: Path) -> list[str]:
    """What it prints when a token is made, described, renewed and ended, without ids and times."""
    options = f'username="alice" password="{PASSWORDS["alice"]}"'
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config="
        f"org.apache.kafka.common.security.scram.ScramLoginModule required {options};\n"
    )

    def run(*args: str) -> str:
        where = f"{side.host}:{PORTS[USERS]}"  # type: ignore[attr-defined]
        return tool(TOOL, where, "--command-config", str(config), *args)

    made = run("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    password = next(part for part in made.split() if part.endswith("=="))
    token_id = next(line for line in made.splitlines() if password in line).split()[0]
    described = run("--describe", "--owner-principal", "User:alice")
    acts = [
        run("--renew", "--renew-time-period", "-1", "--hmac", password),
        run("--expire", "--expiry-time-period", "-1", "--hmac", password),
    ]
    own = [line for line in described.splitlines() if token_id in line]
    outputs = [made, *own, *acts]
    return [_blank(output.replace(token_id, "ID").replace(password, "HMAC")) for output in outputs]


def _blank(text: str) -> str:
    return re.sub(r"[ \t]+", " ", re.sub(r"\d", "0", text))


ASKED: dict[str, list[str] | None] = {
    "all": None, "none": [], "alice's": ["User:alice"], "bob's": ["User:bob"],
    "both's": ["User:alice", "User:bob"], "a group's": ["Group:alice"], "nobody's": ["User:nobody"],
}  # fmt: skip


@pytest.mark.parametrize("kind", ASKED)
def test_tokens_are_described_alike(sasl: Pair, kind: str) -> None:
    """To who owns them, to who may renew some, and to who has a right to see some."""

    def ask(side: Side) -> Any:
        _grant(side, ResourceType.USER, "User:alice", Operation.DESCRIBE_TOKENS, "User:carol")
        with Visitor(side) as alice, Visitor(side, "bob") as bob:
            own_tokens = alice.create(
                renewers=[Renewers(principal_type="User", principal_name="bob")]
            )
            hidden, shown, theirs = alice.create(), alice.create(), bob.create()
            for token, who in ((hidden, "User:nobody"), (shown, "User:bob")):
                kind_of = ResourceType.DELEGATION_TOKEN
                _grant(side, kind_of, token["token_id"], Operation.DESCRIBE, who)
            names = {
                token["token_id"]: name
                for token, name in ((own_tokens, "a"), (hidden, "b"), (shown, "c"), (theirs, "d"))
            }
            tokens = [
                _tokens_named(talk.describe(ASKED[kind], version), names)
                for talk in (alice, bob)
                for version in (0, 1, 2, 3)
            ]
            for expired in (own_tokens, hidden, shown):
                alice.expire(expired)
            bob.expire(theirs)
            return tokens

    sasl.assert_same(ask)


def _tokens_named(answer: Any, names: dict[str, str]) -> Any:
    """The tokens of this test alone, by names that are the same on both sides."""
    kept = [row for row in answer["tokens"] if row["token_id"] in names]
    return answer | {
        "tokens": sorted(
            (
                row
                | {
                    "token_id": names[row["token_id"]],
                    "hmac": len(row["hmac"]),
                    "expiry_timestamp": row["expiry_timestamp"] - row["issue_timestamp"],
                    "max_timestamp": row["max_timestamp"] - row["issue_timestamp"],
                    "issue_timestamp": 0,
                }
                for row in kept
            ),
            key=lambda row: str(row["token_id"]),
        )
    }
