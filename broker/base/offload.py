"""Offloading of work that grows with a client's input: begun on the event loop, finished in a
thread.

A batch of 1 MB may expand to 1 GB of zeros or a hundred million records, and its header does not
show it. Such work is written as *steps*: a generator that yields after each piece of a few hundred
microseconds and returns the result. `Offload.finish` runs the first steps at once, which completes
ordinary requests, and moves an unfinished generator to a thread. Steps that yield BEYOND announce a
long piece.

Invariants:

- Steps read only immutable data (the bytes of a request, a batch read from a file) and change
  nothing. The caller applies the result on the loop, after it has checked what changed meanwhile.
- A constant bounds the memory of steps, not the expanded size of the client's bytes.
- Without threads (simulation, tests) all steps run at once, with the same result.

A thread holds the interpreter for at most the switch interval (`broker.__main__` sets 0.5 ms), and
not at all within zlib, pyarrow and crc32c.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from concurrent.futures import Executor
from typing import TypeVar

Result = TypeVar("Result")
Item = TypeVar("Item")

Steps = Generator[int, None, Result]

STEP = 1
STEPS_AT_ONCE = 4
BEYOND = STEPS_AT_ONCE


def run_steps(steps: Steps[Result]) -> Result:
    """Run all steps now and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


class Offload:
    """Runs long work in `threads`; without threads, all work runs at once."""

    def __init__(self, threads: Executor | None = None) -> None:
        self._threads = threads

    async def finish(self, steps: Steps[Result]) -> Result:
        """Return the result of the steps. A few steps run without suspension."""
        if self._threads is None:
            return run_steps(steps)
        done = 0
        try:
            while done < STEPS_AT_ONCE:
                done += next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        return await self.call(lambda: run_steps(steps))

    async def call(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function that certainly takes long."""
        if self._threads is None:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def close(self) -> None:
        """Drop waiting work. Work that a thread has begun ends by itself."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


async def in_turns(steps: Steps[Result]) -> Result:
    """Run steps that must stay on the loop; other tasks run after each step."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        await asyncio.sleep(0)


PACE = 200


async def yield_items(items: Iterable[Item], every: int = PACE) -> AsyncIterator[Item]:
    """Yield the items; other tasks run after every `every` items."""
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)


WINDOW = 50


async def run_pipelined(
    call: Callable[[Item], Awaitable[Result]], items: Sequence[Item], width: int = WINDOW
) -> list[Result]:
    """Await the call of each item, at most `width` at a time; return the results in order.

    For calls that wait for another process: a window costs about one round trip.
    """
    results: list[Result] = []
    for window in windows(items, width):
        results += await asyncio.gather(*(call(call_input) for call_input in window))
    return results


def windows(items: Sequence[Item], width: int = WINDOW) -> Iterator[Sequence[Item]]:
    """The items, `width` at a time."""
    for start in range(0, len(items), width):
        yield items[start : start + width]
