"""Seconds and processor seconds of a run's phases.

A phase named `load` is one of the run; `load/first acks` is a part of it. Phases of the run follow
one another, so their seconds add up to the run's. Parts may overlap: the self-test runs while the
guarantees are judged. Processor seconds are those of the lab's own process; brokers, clients and
Spark's JVM are other processes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec


class Spent(msgspec.Struct, kw_only=True):
    """The cost of one phase."""

    phase: str
    seconds: float
    processor_seconds: float


class Stopwatch:
    """Measures named phases into `spent`, in the order of their begins.

    The seconds of phases that are not part of another one also go into `seconds`.
    """

    def __init__(self, seconds: dict[str, float], spent: list[Spent] | None = None) -> None:
        self._seconds = seconds
        self._spent = [] if spent is None else spent

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Measure the block, also when it raises. A repeated phase adds up."""
        began, processor = time.monotonic(), time.process_time()
        spent = next((phase_time for phase_time in self._spent if phase_time.phase == phase), None)
        if spent is None:
            spent = Spent(phase=phase, seconds=0.0, processor_seconds=0.0)
            self._spent.append(spent)
        try:
            yield
        finally:
            spent.seconds = round(spent.seconds + time.monotonic() - began, 3)
            took = spent.processor_seconds + time.process_time() - processor
            spent.processor_seconds = round(took, 3)
            if "/" not in phase:
                self._seconds[phase] = spent.seconds


def lines(phases: Iterable[Spent]) -> Iterator[str]:
    """The phases as a table: parts are indented, and the last line adds up the run's phases."""
    phases = list(phases)
    yield f"{'phase':<28}{'seconds':>9}{'processor seconds':>20}"
    for phase in phases:
        head, _, part = phase.phase.rpartition("/")
        name = f"  {part}" if head else part
        yield f"{name:<28}{phase.seconds:>9.2f}{phase.processor_seconds:>20.2f}"
    own = [phase for phase in phases if "/" not in phase.phase]
    seconds = sum(phase.seconds for phase in own)
    yield f"{'all':<28}{seconds:>9.2f}{sum(phase.processor_seconds for phase in own):>20.2f}"
