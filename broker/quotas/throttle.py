"""Client throttling: usage of clients, and how long each must wait (`ClientQuotaManager`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeVar

from urteil.broker.base.rates import Average, Rate, TokenBucket, Windows, answered_throttle_ms
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.quotas.quota_table import Limit, Quota, QuotaTable

MAX_COUNTED = 10_000
T = TypeVar("T")
_Key = tuple[Quota, str | None, str | None]


def make_throttle(quotas: QuotaTable, properties: LiveProperties) -> Throttle:
    """Build a throttle with the windows of `quota.window.*` and `controller.quota.window.*`."""

    def windows(name: str) -> Windows:
        count = properties.value(f"{name}.window.num")
        return Windows(count, properties.value(f"{name}.window.size.seconds") * 1000)

    return Throttle(quotas, windows("quota"), windows("controller.quota"))


LEAST_TIME = 1e-7
"""A nanosecond, in percent of a second: the least time of a request, since the loop's clock has
whole ms."""


class Throttle:
    """The throttle for all kinds of quotas. Without limits it counts nothing.

    Entities that share a limit share a count. Request time causes a wait of one window at most.
    """

    def __init__(
        self,
        quotas: QuotaTable,
        windows: Windows,
        for_controller: Windows,
        now_ms: Callable[[], float] = lambda: asyncio.get_running_loop().time() * 1000,
    ) -> None:
        self._quotas = quotas
        self._windows = windows
        self._for_controller = for_controller
        self._now_ms = now_ms
        self._rates: dict[_Key, Rate] = {}
        self._buckets: dict[_Key, TokenBucket] = {}
        self._waits: dict[_Key, Average] = {}
        self.throttled_ms: dict[Quota, float] = dict.fromkeys(Quota, 0.0)  # since the start
        self.throttled: dict[Quota, int] = dict.fromkeys(Quota, 0)

    @property
    def is_active(self) -> bool:
        """Whether clients have any limit."""
        return self._quotas.limits_clients

    def is_limited(self, quota: Quota) -> bool:
        return self._quotas.is_limited(quota)

    def spend(self, quota: Quota, user: str, client_id: str, amount: float) -> int:
        """Count an amount; return the wait in ms."""
        limit = self._quotas.of_client(quota, user, client_id)
        if limit is None:
            return 0
        rate, now_ms = self._rate(quota, limit), self._now_ms()
        rate.record(max(amount, LEAST_TIME) if quota is Quota.REQUEST else amount, now_ms)
        wait_ms = rate.throttle_ms(limit.value, now_ms)
        if quota is Quota.REQUEST:
            wait_ms = min(wait_ms, self._windows.size_ms)
        wait_ms = answered_throttle_ms(wait_ms)
        if wait_ms:
            self._note(quota, wait_ms, limit)
        return wait_ms

    def take_back(self, quota: Quota, user: str, client_id: str, amount: float) -> None:
        """Cancel an amount that was counted but not delivered."""
        limit = self._quotas.of_client(quota, user, client_id)
        if limit is not None:
            self._rate(quota, limit).record(-amount, self._now_ms())

    def at_once(self, user: str, client_id: str) -> float | None:
        """Return the most bytes that a fetch may get without a wait; None without a limit."""
        limit = self._quotas.of_client(Quota.FETCH, user, client_id)
        if limit is None:
            return None
        return limit.value * (self._windows.count - 1) * self._windows.size_ms / 1000

    def debt_ms(self, user: str, client_id: str) -> int | None:
        """Return the wait before the next mutation in ms; None without a wait."""
        limit = self._quotas.of_client(Quota.MUTATION, user, client_id)
        if limit is None:
            return None
        bucket, now_ms = self._bucket(limit), self._now_ms()
        if not bucket.is_in_debt(limit.value, now_ms):
            return None
        wait_ms = answered_throttle_ms(bucket.throttle_ms(limit.value, now_ms))
        self._note(Quota.MUTATION, wait_ms, limit)
        return wait_ms

    def change(self, user: str, client_id: str, partitions: int) -> None:
        """Count mutations by the controller for a client."""
        limit = self._quotas.of_client(Quota.MUTATION, user, client_id)
        if limit is not None:
            self._bucket(limit).take(partitions, limit.value, self._now_ms())

    def connect(self, address: str) -> int:
        """Count a connection; return the wait of its address in ms, one window at most
        (KIP-612)."""
        value = self._quotas.of_address(address)
        if value is None:
            return 0
        rate, now_ms = self._rate(Quota.CONNECTION, Limit(value, address, None)), self._now_ms()
        rate.record(1, now_ms)
        wait_ms = min(rate.throttle_ms(value, now_ms), self._windows.size_ms)
        if wait_ms:
            rate.record(-1, now_ms)
            self._note(Quota.CONNECTION, wait_ms)
        return wait_ms

    def waits_ms(self) -> Iterator[tuple[Quota, str, str, float]]:
        """Yield recent average waits: quota, user and client id (empty if not counted by them),
        ms."""
        now_ms = self._now_ms()
        for (quota, user, client_id), waits in self._waits.items():
            yield quota, user or "", client_id or "", waits.value(now_ms)

    def _note(self, quota: Quota, wait_ms: int, limit: Limit | None = None) -> None:
        self.throttled_ms[quota] += wait_ms
        self.throttled[quota] += 1
        if limit is not None:
            key = (quota, limit.user, limit.client_id)
            waits = _get_count(self._waits, key, lambda: Average(self._windows))
            waits.record(wait_ms, self._now_ms())

    def _rate(self, quota: Quota, limit: Limit) -> Rate:
        key = (quota, limit.user, limit.client_id)
        return _get_count(self._rates, key, lambda: Rate(self._windows))

    def _bucket(self, limit: Limit) -> TokenBucket:
        key = (Quota.MUTATION, limit.user, limit.client_id)
        return _get_count(
            self._buckets,
            key,
            lambda: TokenBucket(self._for_controller, limit.value, self._now_ms()),
        )


def _get_count(counts: dict[_Key, T], key: _Key, make: Callable[[], T]) -> T:
    """Return the count of a key. Above the maximum, the one unused for longest is dropped, so that
    other clients cannot clear a count that is in use."""
    counts[key] = value = counts.pop(key, None) or make()
    if len(counts) > MAX_COUNTED:
        del counts[next(iter(counts))]
    return value
