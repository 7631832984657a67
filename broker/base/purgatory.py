"""Operations that wait for an event: watched objects call them, a timer ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from urteil.broker.base.remote_time import waiting

Result = TypeVar("Result")


class Watchers:
    """Callbacks that want to hear of a change; they may remove themselves while being called."""

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
    """How many operations of one kind wait, and how many objects they watch, all together."""

    __slots__ = ("delayed", "watched")

    def __init__(self) -> None:
        self.delayed = 0
        self.watched = 0


class Delayed(Generic[Result]):
    """One waiting operation: done when `try_complete` answers, or when its time is up.

    `try_complete` returns None to go on waiting; `expire` gives the answer of last resort. While
    it waits it is counted in `purgatory`.
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
        """Complete at once or upon a notification; after `timeout_ms` what `expire` says."""
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
            return await waiting(self._future)
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
