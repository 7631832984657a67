"""SASL listeners of both clusters answer alike."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest

from tests.conformance.kafka_tools import old_tool
from tests.conformance.pair import Pair
from tests.conformance.sasl import (
    MECHANISMS,
    PASSWORDS,
    SESSION_MS,
    TIMED,
    Talk,
)
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.framing import RequestHeader, encode_request
from urteil.broker.wire.messages import (
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    DescribeUserScramCredentialsRequest,
    FetchRequest,
    ListGroupsRequest,
    MetadataRequest,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

NAMED = ApiVersionsRequest(client_software_name="asker", client_software_version="1")


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("mechanism", [*MECHANISMS, "GSSAPI", "plain", "", "X" * 200])
def test_handshakes_are_answered_alike(sasl: Pair, mechanism: str, version: int) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            return talk.shake(mechanism, version), talk.bare(b"") if mechanism == "" else None

    sasl.assert_same(ask)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_valid_credentials_are_accepted(sasl: Pair, mechanism: str, version: int) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            last = talk.log_in(mechanism, version=version)
            return last, talk.ask(MetadataRequest(topics=[]), 1) != CLOSED

    assert sasl.assert_same(ask)[1]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [
        ("PLAIN", "alice", "wrong"),
        ("PLAIN", "nobody", "x"),
        ("SCRAM-SHA-256", "alice", "wrong"),
        ("SCRAM-SHA-512", "nobody", "x"),
    ],
)
def test_invalid_credentials_are_rejected_alike(
    sasl: Pair, mechanism: str, user: str, password: str, version: int
) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            last = talk.log_in(mechanism, user, password, version)
            return last, talk.ask(MetadataRequest(topics=[]), 1)

    assert sasl.assert_same(ask)[1] == CLOSED


TOKENS = {
    "PLAIN": [
        b"", b"\0", b"\0\0", b"\0alice\0", b"\0\0x", b"\0a\0b\0c", b"bob\0alice\0alice-Secret",
        b"alice\0alice\0alice-Secret", b"\0alice\0\xff\xfe", b"\0alice\0alice-Secret\0",
    ],
    "SCRAM-SHA-256": [
        b"", b"n,,", b"n,,n=alice,r=", b"y,,n=alice,r=abc", b"p=tls-unique,,n=alice,r=abc",
        b"n,a=bob,n=alice,r=abc", b"n,,n=al=ice,r=abc", b"n,,m=x,n=nobody,r=abc", b"\xff\xfe",
        b"n,,n=nobody,r=abc,tokenauth=true",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "token"), [(kind, token) for kind, tokens in TOKENS.items() for token in tokens]
)
def test_malformed_first_message_is_answered_alike(
    sasl: Pair, mechanism: str, token: bytes
) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            talk.shake(mechanism)
            return talk.show(token), talk.ask(MetadataRequest(topics=[]), 1) == CLOSED

    sasl.assert_same(ask)


FINALS = {
    "nothing": b"", "another nonce": b"c=biws,r=abc,p=YWJj", "no proof": b"c=biws,r=R",
    "a wrong proof": b"c=biws,r=R,p=YWJj", "no base64": b"c=biws,r=R,p=%%",
}  # fmt: skip


@pytest.mark.parametrize("kind", FINALS)
def test_malformed_final_message_is_answered_alike(sasl: Pair, kind: str) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            talk.shake("SCRAM-SHA-256")
            first = talk.show(b"n,,n=alice,r=abc")["auth_bytes"]
            nonce = first.split(b",")[0][2:]
            return talk.show(FINALS[kind].replace(b"R", nonce))

    sasl.assert_same(ask)


NONCES = {
    "the server's": "abcS", "the client's twice": "abcabcS", "the server's part alone": "S",
    "another client's": "xyzS", "less than the server's part": "abcH", "more behind": "abcSx",
    "none": "", "something before": "zzabcS",
}  # fmt: skip
"""Of final messages whose proof is right for them: `S` is the server's part, `H` all but its first
character. librdkafka before 2.6 (Debian 12's kcat, rsyslog) repeats the client's part."""


@pytest.mark.parametrize("kind", NONCES)
def test_wrong_nonce_of_a_final_message_is_answered_alike(sasl: Pair, kind: str) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            talk.shake("SCRAM-SHA-256")
            first = talk.show(b"n,,n=alice,r=abc")["auth_bytes"].decode()
            part = first.split(",")[0].removeprefix("r=abc")
            nonce = NONCES[kind].replace("S", part).replace("H", part[1:])
            answer = talk.show(scram_final("n=alice,r=abc", first, nonce, PASSWORDS["alice"]))
            return answer | {"auth_bytes": answer["auth_bytes"][:2]}

    sasl.assert_same(ask)


def scram_final(bare: str, first: str, nonce: str, password: str) -> bytes:
    """A client's final message with a proof that is right for its nonce."""
    salt, iterations = (part.partition("=")[2] for part in first.split(",")[1:3])
    salted = hashlib.pbkdf2_hmac(
        "sha256", password.encode(), base64.b64decode(salt), int(iterations)
    )
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    without_proof = f"c=biws,r={nonce}"
    message = f"{bare},{first},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def test_raw_tokens_after_handshake_version_0_are_accepted(sasl: Pair) -> None:
    def ask(side: Side) -> Any:
        answers = []
        for token in (b"\0alice\0alice-Secret", b"\0alice\0wrong", b"nonsense"):
            with Talk(side) as talk:
                talk.shake("PLAIN", 0)
                answers.append(talk.bare(token))
                answers.append(talk.ask(MetadataRequest(topics=[]), 1) == CLOSED)
        return answers

    assert sasl.assert_same(ask)[:2] == [b"", False]


FIRST = {
    "metadata": (MetadataRequest(topics=[]), 1),
    "produce": (ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 3),
    "fetch": (FetchRequest(replica_id=-1, max_wait_ms=1, min_bytes=1, topics=[]), 4),
    "authenticate": (SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-Secret"), 2),
    "groups": (ListGroupsRequest(), 0),
}


STAGES = ("at once", "after ApiVersions", "after the handshake")
ASKED_THEN = [(kind, stage) for kind in FIRST for stage in STAGES]
ASKED_THEN.remove(("authenticate", "after the handshake"))  # that is what belongs there


@pytest.mark.parametrize(("kind", "stage"), ASKED_THEN)
def test_other_request_before_authentication_is_answered_alike(
    sasl: Pair, kind: str, stage: str
) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            if stage == "after ApiVersions":
                assert talk.ask(NAMED, 3) != CLOSED
            if stage == "after the handshake":
                talk.shake("PLAIN")
            message, version = FIRST[kind]
            return talk.ask(message, version), talk.shake("PLAIN")

    sasl.assert_same(ask)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_api_versions_before_authentication_is_answered_once(sasl: Pair, version: int) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            first = talk.ask(NAMED, version)
            return first["error_code"], talk.ask(NAMED, version) == CLOSED

    assert sasl.assert_same(ask) == ("NONE", True)


def test_unsupported_api_versions_request_may_precede_the_handshake(sasl: Pair) -> None:
    def ask(side: Side) -> Any:
        answers = []
        with Talk(side) as talk:
            bad = ApiVersionsRequest(client_software_name="?", client_software_version="!")
            answers.append(talk.ask(bad, 3)["error_code"])
            answers.append(talk.send(bytes.fromhex("0000000c001200630000000500017800"))[4:6])
            answers.append(talk.ask(NAMED, 3)["error_code"])
            answers.append(talk.log_in("PLAIN"))
        return answers

    sasl.assert_same(ask)


@pytest.mark.parametrize("piece_bytes", [1, 7, 10_000])
def test_login_split_into_pieces_is_accepted(sasl: Pair, piece_bytes: int) -> None:
    """With a request behind it that nobody waited to send."""
    login: list[tuple[Any, int]] = [
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-Secret"), 2),
        (MetadataRequest(topics=[]), 1),
    ]
    data = b"".join(
        b"".join(encode_request(RequestHeader(request.KEY, version, number, "asker"), request))
        for number, (request, version) in enumerate(login)
    )

    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            return [frame and frame[:4] for frame in talk.pour(data, 3, piece_bytes)]

    assert sasl.assert_same(ask) == [number.to_bytes(4, "big") for number in range(3)]


BROKEN = {
    "a handshake of version 2": bytes.fromhex("000000110011000200000005ffff0005504c41494e"),
    "a handshake of version -1": bytes.fromhex("000000110011ffff00000005ffff0005504c41494e"),
    "a handshake cut short": bytes.fromhex("0000000c0011000100000005ffff00ff"),
    "an unknown API": bytes.fromhex("0000000a03e8000100000005ffff"),
    "a Kerberos ticket": bytes.fromhex("0000000660040605040a"),
    "no frame": b"GET / HTTP/1.1\r\n\r\n",
    "one byte": bytes.fromhex("0000000142"),
    "nothing": bytes.fromhex("00000000"),
    "a size below zero": bytes.fromhex("ffffffff"),
    "more than a frame may have": (524_289).to_bytes(4, "big"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_protocol_violation_is_answered_alike(sasl: Pair, kind: str) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            return talk.send(BROKEN[kind]) or CLOSED

    sasl.assert_same(ask)


def test_repeated_authentication_without_session_limit_is_answered_alike(sasl: Pair) -> None:
    def ask(side: Side) -> Any:
        with Talk(side) as talk:
            talk.log_in("PLAIN")
            return [
                talk.shake("PLAIN"),
                talk.show(b"\0alice\0alice-Secret"),
                talk.shake("PLAIN", 0),
                talk.ask(MetadataRequest(topics=[]), 1) == CLOSED,
            ]

    sasl.assert_same(ask)


def test_authentication_on_an_open_listener_is_answered_alike(sasl: Pair) -> None:
    def ask(side: Side) -> Any:
        return [
            side.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1),
            side.ask(SaslAuthenticateRequest(auth_bytes=b""), 2),
        ]

    sasl.assert_same(ask)


@pytest.mark.parametrize("version", [pytest.param(0, marks=pytest.mark.thorough), 2])
def test_expired_session_is_closed(sasl: Pair, version: int) -> None:
    def ask(side: Side) -> Any:
        with Talk(side, TIMED) as talk:
            answer = talk.log_in("SCRAM-SHA-256", version=version)
            came = time.monotonic()  # the session began before the answer
            before = talk.ask(MetadataRequest(topics=[]), 1) == CLOSED
            time.sleep(max(0.0, came + SESSION_MS / 1000 + 0.2 - time.monotonic()))  # it is over
            return answer, before, talk.ask(MetadataRequest(topics=[]), 1) == CLOSED

    (_, before, after) = sasl.assert_same(ask)
    assert (before, after) == (False, True)


def test_renewed_session_continues(sasl: Pair) -> None:
    def ask(side: Side) -> Any:
        answers = []
        with Talk(side, TIMED) as talk:
            talk.log_in("SCRAM-SHA-256")
            for _ in range(2):
                answers.append(talk.log_in("SCRAM-SHA-256"))
                answers.append(talk.ask(MetadataRequest(topics=[]), 1) == CLOSED)
                time.sleep(1.1)  # more often than once a second is refused
        return answers

    sasl.assert_same(ask)


def test_second_renewal_within_a_second_is_rejected(sasl: Pair) -> None:
    def ask(side: Side) -> Any:
        took_s = 1.0
        while took_s >= 1:  # a slow machine needs more for it, and then nothing is refused
            with Talk(side, TIMED) as talk:
                talk.log_in("PLAIN")
                began_s = time.monotonic()
                talk.log_in("PLAIN")
                answers = talk.shake("PLAIN"), talk.ask(MetadataRequest(topics=[]), 1) == CLOSED
                took_s = time.monotonic() - began_s
        return answers

    sasl.assert_same(ask)


@pytest.mark.parametrize("other", ["a user", "a mechanism", "a password", "a request"])
def test_renewal_by_another_principal_is_rejected(sasl: Pair, other: str) -> None:
    def ask(side: Side) -> Any:
        with Talk(side, TIMED) as talk:
            talk.log_in("PLAIN")
            if other == "a user":
                return talk.log_in("PLAIN", "bob")
            if other == "a password":
                return talk.log_in("PLAIN", "alice", "wrong")
            if other == "a mechanism":
                first = talk.shake("SCRAM-SHA-256")
                return first, talk.show(b"n,,n=alice,r=abc")
            first = talk.shake("PLAIN")
            return first, talk.ask(MetadataRequest(topics=[]), 1) == CLOSED

    sasl.assert_same(ask)


Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> Upsertion:
    return Upsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"x"
    )


CHANGES: dict[str, tuple[list[Deletion], list[Upsertion]]] = {
    "none": ([], []),
    "a user": ([], [upsertion("carol, a=b")]),
    "both mechanisms": ([], [upsertion("dave"), upsertion("dave", 2, 16384)]),
    "one twice": ([], [upsertion("erin"), upsertion("erin")]),
    "gone and set": ([Deletion(name="erin", mechanism=1)], [upsertion("erin")]),
    "nobody gone": ([Deletion(name="nobody", mechanism=1)], []),
    "nobody gone, another set": (
        [Deletion(name="frank", mechanism=1)], [upsertion("frank", 2), upsertion("grace")],
    ),
    "few iterations": ([], [upsertion("few", iterations=4095)]),
    "many iterations": ([], [upsertion("many", iterations=16385)]),
    "no mechanism": ([], [upsertion("none", 0), upsertion("other", 3)]),
    "a mechanism below zero": ([Deletion(name="below", mechanism=-1)], []),
    "no name": ([], [upsertion("")]),
    "no name gone": ([Deletion(name="", mechanism=1)], []),
    "too few for a mechanism that is none": (
        [Deletion(name="ivan", mechanism=9)], [upsertion("ivan", iterations=1)],
    ),
    "a mechanism that is none and too few": (
        [], [upsertion("judy", iterations=1), upsertion("judy", 9)],
    ),
    "a name that is not a node's": ([Deletion(name="nobody", mechanism=1)], [upsertion("..")]),
    "no password": (
        [], [Upsertion(name="kim", mechanism=1, iterations=4096, salt=b"salt"), upsertion("lea")],
    ),
    "dave gone": ([Deletion(name="dave", mechanism=2)], []),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_credential_alterations_are_answered_alike(sasl: Pair, kind: str) -> None:
    deletions, upsertions = CHANGES[kind]
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)

    def ask(side: Side) -> Any:
        answer = side.ask(request, 0)
        answer["results"].sort(key=lambda row: str(row["user"]))
        with side.znodes() as zk:
            nodes = sorted(zk.get_children("/config/users"))
            written = {
                name: json.loads(zk.get(f"/config/users/{name}")[0])
                for name in nodes
                if name not in PASSWORDS
            }
        return answer, nodes, written

    sasl.assert_same(ask)


ASKED: dict[str, list[str] | None] = {
    "everybody": None,
    "nobody": [],
    "some": ["dave", "carol, a=b", "grace"],
    "one who is not there": ["alice", "mallory"],
    "one twice": ["dave", "dave", "alice"],
    "no name": ["", "dave"],
    "a name that is not a node's": ["..", "dave"],
}


@pytest.mark.parametrize("kind", ASKED)
def test_credentials_are_described_alike(sasl: Pair, kind: str) -> None:
    names = ASKED[kind]
    users = None if names is None else [
        DescribeUserScramCredentialsRequest.UserName(name=name) for name in names
    ]  # fmt: skip

    def ask(side: Side) -> Any:
        answer = side.ask(DescribeUserScramCredentialsRequest(users=users), 0)
        answer["results"].sort(key=lambda row: str(row["user"]))
        return answer

    sasl.assert_same(ask)


def test_user_written_to_zookeeper_authenticates(sasl: Pair) -> None:
    side = sasl.ours
    old_tool(
        "kafka.admin.ConfigCommand", side.zookeeper, "--alter", "--entity-type", "users",
        "--entity-name", "heidi", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=h-Sec]",
    )  # fmt: skip

    def comes_in() -> bool:
        with Talk(side) as talk:
            answer = talk.log_in("SCRAM-SHA-256", "heidi", "h-Sec")
            return bool(answer["error_code"] == "NONE")

    side.until(comes_in)
