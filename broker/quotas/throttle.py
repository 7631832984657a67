"""Counts what clients take and says how long each has to wait (`ClientQuotaManager`)."""

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
    """With the windows of `quota.window.*` and `controller.quota.window.*`."""

    def windows(name: str) -> Windows:
        count = properties.value(f"{name}.window.num")
        return Windows(count, properties.value(f"{name}.window.size.seconds") * 1000)

    return Throttle(quotas, windows("quota"), windows("controller.quota"))


LEAST_TIME = 1e-7
"""A nanosecond, in percent of a second: no request takes less, though it may begin and end in one
ms of the loop's clock, which counts whole ones."""


class Throttle:
    """One for all kinds of quotas. Where nothing is limited nothing is counted.

    Who shares a limit shares a count. The time of requests is held up for one window at most.
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
        """Whether anything of clients is limited at all."""
        return self._quotas.limits_clients

    def is_limited(self, quota: Quota) -> bool:
        return self._quotas.is_limited(quota)

    def spend(self, quota: Quota, user: str, client_id: str, amount: float) -> int:
        """Count it; how many ms to wait for it."""
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
        """What was counted, and then not given."""
        limit = self._quotas.of_client(quota, user, client_id)
        if limit is not None:
            self._rate(quota, limit).record(-amount, self._now_ms())

    def at_once(self, user: str, client_id: str) -> float | None:
        """The most bytes that a fetch can have without being held up; None for any number."""
        limit = self._quotas.of_client(Quota.FETCH, user, client_id)
        if limit is None:
            return None
        return limit.value * (self._windows.count - 1) * self._windows.size_ms / 1000

    def debt_ms(self, user: str, client_id: str) -> int | None:
        """How long until the controller may be asked for changes again; None for now."""
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
        """Count changes that the controller makes for somebody."""
        limit = self._quotas.of_client(Quota.MUTATION, user, client_id)
        if limit is not None:
            self._bucket(limit).take(partitions, limit.value, self._now_ms())

    def connect(self, address: str) -> int:
        """Count a connection; how many ms the address has to wait for it, one
        window at most (KIP-612)."""
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
        """For how long those who share a limit were held up lately, on an average: the quota, user
        and client id (empty where it does not count by them), and ms."""
        now_ms = self._now_ms()
        for (quota, user, client_id), waits in self._waits.items():
            yield quota, user or "", client_id or "", waits.value(now_ms)

    def _note(self, quota: Quota, wait_ms: int, limit: Limit | None = None) -> None:
        self.throttled_ms[quota] += wait_ms
        self.throttled[quota] += 1
        if limit is not None:
            key = (quota, limit.user, limit.client_id)
            waits = _kept(self._waits, key, lambda: Average(self._windows))
            waits.record(wait_ms, self._now_ms())

    def _rate(self, quota: Quota, limit: Limit) -> Rate:
        key = (quota, limit.user, limit.client_id)
        return _kept(self._rates, key, lambda: Rate(self._windows))

    def _bucket(self, limit: Limit) -> TokenBucket:
        key = (Quota.MUTATION, limit.user, limit.client_id)
        return _kept(
            self._buckets,
            key,
            lambda: TokenBucket(self._for_controller, limit.value, self._now_ms()),
        )


def _kept(counts: dict[_Key, T], key: _Key, make: Callable[[], T]) -> T:
    """Of too many the one goes that was not asked for longest: others must not wipe its count."""
    counts[key] = found = counts.pop(key, None) or make()
    if len(counts) > MAX_COUNTED:
        del counts[next(iter(counts))]
    return found
