"""What a question needs of the machine that it runs on: connections, clocks, pauses, parallel acts.

`Environment` is the real machine. The simulation gives questions another one, whose connections
lead to simulated brokers and whose time is virtual, so questions use no clock, thread or socket of
their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until
from urteil.harness.protocol.connection import Connection

T = TypeVar("T")


class Channel(Protocol):
    """A connection to one broker, as `Connection`."""

    def call(self, frame: bytes) -> bytes: ...

    def call_all(self, frames: Sequence[bytes]) -> list[bytes]: ...

    def close(self) -> None: ...


class Environment:
    """Sockets, clocks and threads."""

    def connect(self, address: str, timeout_s: float) -> Channel:
        """A connection whose calls have this timeout. Raises OSError."""
        return Connection(address, timeout_s)

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def monotonic_s(self) -> float:
        return self.monotonic_ns() / 1e9

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def run_all(self, acts: Sequence[Callable[[], T]]) -> list[T]:
        """Run several acts in parallel and return their results. Raises the first failure when all
        have ended."""
        return run_on_all(lambda act: act(), acts)

    def until(
        self,
        read: Callable[[], T],
        reached: Callable[[T], object] = bool,
        *,
        deadline_s: float,
        poll_s: float,
    ) -> T:
        """`until` by this environment's time."""
        return until(
            read, reached, deadline_s=deadline_s, poll_s=poll_s, stop=Unstopped(self),
            monotonic_s=self.monotonic_s,
        )  # fmt: skip


class Unstopped:
    """A stop that is never set, with the pauses of an environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float, /) -> None:
        self._environment.pause(seconds)
