"""The delegation tokens of the cluster: keeps this broker's table equal to ZooKeeper, and changes
tokens there."""

from __future__ import annotations

import asyncio
import base64
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from urteil.broker.security.principals import Principal
from urteil.broker.security.tokens.token_table import NO_TIME, Token, TokenTable
from urteil.broker.security.tokens.token_znodes import CHANGE_PREFIX, CHANGES, TokenStore
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.zookeeper.change_notifications import ChangeNotifications
from urteil.broker.zookeeper.session import Session

log = logging.getLogger("tokens")

CHECK_S = 1.0
"""How soon a new controller looks for expired tokens."""

ExpiryResult = tuple[ErrorCode, int]
"""An error, and the expiry time of the token in ms since 1970 (-1 with an error)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTimes:
    """Times in ms: the maximum lifetime of a token, its renewal period, and the interval of checks
    for expired tokens."""

    max_lifetime_ms: int
    expiry_ms: int
    check_interval_ms: int


class ClusterTokens:
    """Applies one change at a time on this broker; among brokers the last write wins, as in Apache
    Kafka."""

    def __init__(
        self, zk: Session, secret: str, times: TokenTimes, now_ms: Callable[[], int]
    ) -> None:
        """`secret` is every broker's; without one nothing is served, read or written."""
        self.table = TokenTable(secret)
        self._store = TokenStore(zk)
        self._times = times
        self._now_ms = now_ms
        self._turn = asyncio.Lock()
        self._notices = ChangeNotifications(zk, CHANGES, CHANGE_PREFIX, self._take, now_ms)
        self._expiry: asyncio.Task[None] | None = None

    async def start(self, is_controller: Callable[[], bool]) -> None:
        """Read all tokens, follow changes, and remove expired tokens while this broker is the
        controller."""
        if not self.table.is_enabled:
            return
        await self._store.prepare()
        for token_id in await self._store.ids():
            try:
                await self._read(token_id)
            except ValueError as error:
                log.error("%s; it is passed over", error)
        await self._notices.start()
        self._expiry = asyncio.create_task(self._expire_always(is_controller))

    async def stop(self) -> None:
        await self._notices.stop()
        if self._expiry is not None:
            self._expiry.cancel()
            await asyncio.gather(self._expiry, return_exceptions=True)

    async def _take(self, data: bytes) -> None:
        async with self._turn:
            await self._read(data.decode())

    async def _read(self, token_id: str) -> None:
        token = await self._store.read(token_id)
        if token is None:
            self.table.remove(token_id)
        else:
            self.table.put(token)

    async def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: tuple[Principal, ...],
        max_lifetime_ms: int,
    ) -> Token:
        """Create a token. `max_lifetime_ms`: 0 or less for the maximum."""
        now_ms, times = self._now_ms(), self._times
        longest_ms = times.max_lifetime_ms
        max_ms = now_ms + (min(max_lifetime_ms, longest_ms) if max_lifetime_ms > 0 else longest_ms)
        token = Token(
            id=base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
            owner=owner,
            requester=requester,
            renewers=renewers,
            issued_ms=now_ms,
            max_ms=max_ms,
            expires_ms=min(max_ms, now_ms + times.expiry_ms),
        )
        async with self._turn:
            await self._put(token)
        log.info("delegation token %s for %s", token.id, owner)
        return token

    async def renew(self, asker: Principal, password: bytes, period_ms: int) -> ExpiryResult:
        """Renew a token. `period_ms`: negative for the default."""
        async with self._turn:
            token, error = self._find_token(asker, password)
            if token is None:
                return error, NO_TIME
            if token.is_over(self._now_ms()):
                return ErrorCode.DELEGATION_TOKEN_EXPIRED, NO_TIME
            return await self._end_in(token, self._times.expiry_ms if period_ms < 0 else period_ms)

    async def expire(self, asker: Principal, password: bytes, period_ms: int) -> ExpiryResult:
        """Set the expiry of a token. `period_ms`: negative to expire it now."""
        async with self._turn:
            token, error = self._find_token(asker, password)
            if token is None:
                return error, NO_TIME
            if period_ms < 0:
                await self._remove(token)
                return ErrorCode.NONE, self._now_ms()
            if token.is_over(self._now_ms()):
                return ErrorCode.DELEGATION_TOKEN_EXPIRED, NO_TIME
            return await self._end_in(token, period_ms)

    def _find_token(self, asker: Principal, password: bytes) -> tuple[Token | None, ErrorCode]:
        token = self.table.by_hmac(password)
        if token is None:
            return None, ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        if not token.may_renew(asker):
            return None, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        return token, ErrorCode.NONE

    async def _end_in(self, token: Token, period_ms: int) -> ExpiryResult:
        ends_ms = min(token.max_ms, _add_as_long(self._now_ms() + period_ms))
        await self._put(replace(token, expires_ms=ends_ms))
        log.info("delegation token %s of %s ends at %d", token.id, token.owner, ends_ms)
        return ErrorCode.NONE, ends_ms

    async def _put(self, token: Token) -> None:
        await self._store.write(token)
        self.table.put(token)
        await self._notices.notify(token.id.encode())

    async def _remove(self, token: Token) -> None:
        await self._store.remove(token.id)
        self.table.remove(token.id)
        await self._notices.notify(token.id.encode())
        log.info("delegation token %s of %s is gone", token.id, token.owner)

    async def _expire_always(self, is_controller: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        while True:
            if not is_controller():
                due_s = loop.time()
            elif loop.time() >= due_s:
                due_s += self._times.check_interval_ms / 1000
                await self.expire_due()
            await asyncio.sleep(min(CHECK_S, self._times.check_interval_ms / 1000))

    async def expire_due(self) -> None:
        """Remove expired tokens; only the controller does this."""
        async with self._turn:
            for token in self.table:
                if token.is_over(self._now_ms()):
                    await self._remove(token)


def _add_as_long(value: int) -> int:
    """Add as Java does: overflow of 64 bits becomes negative."""
    return (value + 2**63) % 2**64 - 2**63


def make_cluster_tokens(
    zk: Session, setting: Callable[[str], Any], now_ms: Callable[[], int]
) -> ClusterTokens:
    """Build the tokens from `delegation.token.*`; `setting` returns a typed value."""
    prefix = "delegation.token."
    secret = setting(f"{prefix}secret.key") or setting(f"{prefix}master.key")
    times = TokenTimes(
        max_lifetime_ms=setting(f"{prefix}max.lifetime.ms"),
        expiry_ms=setting(f"{prefix}expiry.time.ms"),
        check_interval_ms=setting(f"{prefix}expiry.check.interval.ms"),
    )
    return ClusterTokens(zk, secret or "", times, now_ms)
