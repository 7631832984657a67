"""Delayed operations (Kafka's purgatory): each waits for a change of the objects that it watches,
or for its timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from urteil.broker.base.remote_time import await_remote

Result = TypeVar("Result")


class Watchers:
    """Callbacks to call on a change. A callback may remove itself during the call."""

    __slots__ = ("_callbacks",)

    def __init__(self) -> None:
        self._callbacks: dict[Callable[[], None], None] = {}

    def add(self, callback: Callable[[], None]) -> None:
        self._callbacks[callback] = None

    def discard(self, callback: Callable[[], None]) -> None:
        self._callbacks.pop(callback, None)

    def notify(self) -> None:
        if self._callbacks:
            for callback in list(self._callbacks):
                callback()

    def __len__(self) -> int:
        return len(self._callbacks)


class Purgatory:
    """Counters of one kind: waiting operations, and the objects that they watch."""

    __slots__ = ("delayed", "watched")

    def __init__(self) -> None:
        self.delayed = 0
        self.watched = 0


class DelayedOperation(Generic[Result]):
    """A waiting operation. It completes when `try_complete` returns a result, or at its timeout.

    `try_complete` returns None while the operation must wait; `expire` returns the result at the
    timeout. `purgatory` counts the operation while it waits.
    """

    __slots__ = ("_expire", "_future", "_purgatory", "_try_complete", "_watched")

    def __init__(
        self,
        try_complete: Callable[[], Result | None],
        expire: Callable[[], Result],
        purgatory: Purgatory | None = None,
    ) -> None:
        self._try_complete = try_complete
        self._expire = expire
        self._purgatory = purgatory or Purgatory()
        self._watched: list[Watchers] = []
        self._future: asyncio.Future[Result] | None = None

    async def wait(self, watched: list[Watchers], timeout_ms: float) -> Result:
        """Return the result of `try_complete`, now or after a notification, or that of `expire`
        after `timeout_ms`."""
        done = self._try_complete()
        if done is not None:
            return done
        if timeout_ms <= 0:
            return self._expire()
        loop = asyncio.get_running_loop()
        self._future = loop.create_future()
        timer = loop.call_later(timeout_ms / 1000, self._time_is_up)
        self._watched = watched
        for watchers in watched:
            watchers.add(self._check)
        self._purgatory.delayed += 1
        self._purgatory.watched += len(watched)
        try:
            return await await_remote(self._future)
        finally:
            self._purgatory.delayed -= 1
            self._purgatory.watched -= len(watched)
            timer.cancel()
            self._unwatch()

    def _check(self) -> None:
        assert self._future is not None
        if self._future.done():
            return
        done = self._try_complete()
        if done is not None:
            self._settle(done)

    def _time_is_up(self) -> None:
        assert self._future is not None
        if not self._future.done():
            self._settle(self._expire())

    def _settle(self, result: Result) -> None:
        assert self._future is not None
        self._future.set_result(result)
        self._unwatch()

    def _unwatch(self) -> None:
        for watchers in self._watched:
            watchers.discard(self._check)
        self._watched = []
