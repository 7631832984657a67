"""Delegation tokens in a real ZooKeeper, changed and followed by two brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer
from tests.broker.zookeeper.test_session import run, session
from tests.waiting import wait_until
from urteil.broker.security.principals import Principal
from urteil.broker.security.tokens.cluster_tokens import ClusterTokens, TokenTimes
from urteil.broker.security.tokens.token_table import Token
from urteil.broker.security.tokens.token_znodes import (
    TOKENS,
    decode_token,
    encode_token,
    token_path,
)
from urteil.broker.wire.errors import ErrorCode

ANN, BOB = Principal("User", "ann"), Principal("User", "bob, a=b")
TIMES = TokenTimes(max_lifetime_ms=10_000, expiry_ms=5_000, check_interval_ms=20)


class Brokers:
    """Two instances with one manual clock; the second one is the controller."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.second_leads = False


@asynccontextmanager
async def two(
    server: ZooKeeperServer, chroot: str, brokers: Brokers
) -> AsyncIterator[tuple[ClusterTokens, ClusterTokens]]:
    async with session(server, chroot) as first_zk, session(server, chroot) as other:
        keepers = [
            ClusterTokens(zk, "secret", TIMES, lambda: brokers.now_ms) for zk in (first_zk, other)
        ]
        await keepers[0].start(lambda: False)
        await keepers[1].start(lambda: brokers.second_leads)
        yield keepers[0], keepers[1]
        for keeper in keepers:
            await keeper.stop()


def test_token_reaches_every_broker(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with two(zookeeper, chroot, Brokers()) as (first, second):
            token = await first.create(ANN, ANN, (BOB,), -1)
            await wait_until(lambda: list(second.table) == [token], "the token")
            password = second.table.hmac(token.id)
            assert (await second.renew(BOB, password, 7_000)) == (ErrorCode.NONE, 1_007_000)
            await wait_until(
                lambda: [token.expires_ms for token in first.table] == [1_007_000], "its end"
            )
            known = first.table.find("SCRAM-SHA-256", token.id)
            assert known is not None
            assert (known.principal, known.expires_at_ms) == (ANN, 1_007_000)
            assert known.principal.token_authenticated
            await first.expire(ANN, password, -1)
            await wait_until(lambda: not list(second.table), "nothing")
            assert second.table.find("SCRAM-SHA-256", token.id) is None

    run(scenario)


def test_controller_removes_expired_tokens(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Including tokens that were created under another controller."""

    async def scenario() -> None:
        brokers = Brokers()
        async with two(zookeeper, chroot, brokers) as (first, second):
            ends, stays = [await first.create(ANN, BOB, (), ms) for ms in (1_000, 4_000)]
            brokers.now_ms += 1_001
            assert (await first.renew(ANN, first.table.hmac(ends.id), -1))[0] == (
                ErrorCode.DELEGATION_TOKEN_EXPIRED
            )
            await wait_until(lambda: len(list(second.table)) == 2, "both")
            brokers.second_leads = True
            await wait_until(lambda: list(first.table) == [stays], "one")

    run(scenario)


def test_malformed_token_nodes_are_skipped(
    zookeeper: ZooKeeperServer, chroot: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            for name, data in (("bad", b"{"), ("old", b'{"version":9}')):
                await zk.create(f"{TOKENS}/{name}", data, make_parents=True)
            keeper = ClusterTokens(zk, "secret", TIMES, lambda: 1)
            await keeper.start(lambda: True)
            assert not list(keeper.table)
            await keeper.stop()

    run(scenario)
    assert f"{token_path('bad')} holds no delegation token" in caplog.text
    assert "a token of version 9" in caplog.text


def test_tokens_are_disabled_without_a_secret(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            keeper = ClusterTokens(zk, "", TIMES, lambda: 1)
            await keeper.start(lambda: True)
            await keeper.stop()
            assert await zk.exists("/delegation_token") is None

    run(scenario)


def test_token_survives_encoding() -> None:
    token = Token(
        id="x-1", owner=ANN, requester=BOB, renewers=(BOB, ANN), issued_ms=1, max_ms=2, expires_ms=2
    )
    assert decode_token(encode_token(token)) == token
    before_kip_373 = (
        b'{"version":2,"owner":"User%3Aann","renewers":[],"issueTimestamp":1,"maxTimestamp":2,'
        b'"expiryTimestamp":2,"tokenId":"x-1"}'
    )
    assert decode_token(before_kip_373).requester == ANN
