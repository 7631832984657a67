"""Work that grows with a client's input: begun on the event loop, finished beside it.

A batch of 1 MB may hold 1 GB of zeros or a hundred million records, and its header says nothing of
it. So such work is written as *steps*: a generator that yields after every piece of a few hundred
microseconds and returns the result. `Offload.finish` does the first steps at once, which is all
that ordinary requests need, and hands a generator that is not done to a thread. Steps that yield
BEYOND announce a long piece.

What must always be true:

- Steps read only what nobody changes (the bytes of a request, a batch read from a file) and change
  nothing: whoever awaits the result applies it on the loop, after a look at what changed meanwhile.
- Their memory is bounded by a constant, not by what the client's bytes unpack to.
- Without threads (a simulation, tests) all steps are done at once: the result is the same.

A thread holds the interpreter for the switch interval at most (`broker.__main__` sets 0.5 ms), and
not at all within zlib, pyarrow and crc32c.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from concurrent.futures import Executor
from typing import TypeVar

Result = TypeVar("Result")
Item = TypeVar("Item")

Steps = Generator[int, None, Result]

STEP = 1
STEPS_AT_ONCE = 4
BEYOND = STEPS_AT_ONCE


def finished(steps: Steps[Result]) -> Result:
    """The result, all steps done here and now."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


class Offload:
    """`threads` run what takes more than a few steps; without them everything is done at once."""

    def __init__(self, threads: Executor | None = None) -> None:
        self._threads = threads

    async def finish(self, steps: Steps[Result]) -> Result:
        """The result of the steps. Does not suspend if there are few of them."""
        if self._threads is None:
            return finished(steps)
        done = 0
        try:
            while done < STEPS_AT_ONCE:
                done += next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        return await self.call(lambda: finished(steps))

    async def call(self, function: Callable[[], Result]) -> Result:
        """The result of a function that takes long for certain."""
        if self._threads is None:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def close(self) -> None:
        """What runs in a thread ends by itself; what waits for one is dropped."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


async def in_turns(steps: Steps[Result]) -> Result:
    """The result of steps that must run on the loop, with a turn for everybody else after each."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        await asyncio.sleep(0)


PACE = 200


async def paced(items: Iterable[Item], every: int = PACE) -> AsyncIterator[Item]:
    """The items, with a turn for everybody else after so many of them: for loops on the loop."""
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)
