"""The lab's examiner in the simulation: the same questions, put to simulated brokers.

Questions are blocking code. Each runs in a greenlet (`blocking.py`), with an environment whose
connections are simulated ones and whose time is that of the loop. Seeds differ in the order of the
questions and in latencies.

The names of questions begin with `__`: no check judges the logs of their topics, which no producer
of the simulation writes to.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from simloop import Host

from urteil.harness.conformance.catalogue import SUBJECTS
from urteil.harness.conformance.environment import Environment, Unstopped
from urteil.harness.conformance.examiner import PARALLEL, Examiner
from urteil.suites.simulation.blocking import run_blocking, wait_for
from urteil.suites.simulation.client import Client
from urteil.suites.simulation.cluster import BROKERS, EPOCH_MS, PORT, process
from urteil.suites.simulation.history import Questioned
from urteil.suites.simulation.loop import SimulatedLoop

TIMEOUT_S = 3.0
PREFIX = "__examiner"
T = TypeVar("T")


class SimulatedEnvironment(Environment):
    """What a question has on a simulated host. Its methods block in `run_blocking`."""

    def __init__(self, loop: SimulatedLoop, host: Host) -> None:
        self._loop, self._host = loop, host

    def connect(self, address: str, timeout_s: float) -> SimulatedConnection:
        return SimulatedConnection(address, timeout_s)

    def monotonic_ns(self) -> int:
        return round(self._loop.time() * 1e9)

    def wall_ms(self) -> int:
        return EPOCH_MS + int(self._loop.time() * 1000)

    def pause(self, seconds: float) -> None:
        wait_for(asyncio.sleep(seconds))

    def run_all(self, acts: Sequence[Callable[[], T]]) -> list[T]:
        return wait_for(self._run_all(acts))

    async def _run_all(self, acts: Sequence[Callable[[], T]]) -> list[T]:
        tasks = [self._host.create_task(run_blocking(act)) for act in acts]
        await asyncio.wait(tasks)
        return [task.result() for task in tasks]


class SimulatedConnection:
    """A connection from the host of the running task."""

    def __init__(self, address: str, timeout_s: float) -> None:
        host, _, port = address.rpartition(":")
        self._timeout_s = timeout_s
        self._reader, self._writer = self._wait(asyncio.open_connection(host, int(port)))

    def call(self, frame: bytes) -> bytes:
        return self.call_all([frame])[0]

    def call_all(self, frames: Sequence[bytes]) -> list[bytes]:
        self._writer.write(b"".join(frames))
        return [self._wait(self._read_response()) for _ in frames]

    async def _read_response(self) -> bytes:
        try:
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise ConnectionError("closed by the broker") from None

    def _wait(self, awaitable: Awaitable[T]) -> T:
        """Raises TimeoutError, ConnectionError."""
        return wait_for(_within(self._timeout_s, awaitable))

    def close(self) -> None:
        self._writer.close()


async def _within(timeout_s: float, awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(timeout_s):
        return await awaitable


class QuestionClient(Client):
    """Puts questions in an order of its own: all that the simulation can put, or `most`."""

    async def run(self, most: int) -> None:
        environment = SimulatedEnvironment(self._loop, self.host)
        examiner = Examiner(
            environment, [f"{process(broker)}:{PORT}" for broker in BROKERS], TIMEOUT_S, PREFIX,
            Unstopped(environment),
        )  # fmt: skip
        questions = [question for question in SUBJECTS["all"] if not question.unsimulated]
        self.rng.shuffle(questions)
        remaining = iter(questions[:most])

        async def ask() -> None:
            for question in remaining:
                asking = partial(examiner.ask_until_right, question)
                if (answered := await run_blocking(asking)) is not None:
                    self.history.questioned.append(Questioned(self.name, *answered))

        await asyncio.gather(*[self.host.create_task(ask()) for _ in range(PARALLEL)])
