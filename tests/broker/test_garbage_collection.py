"""Full garbage collections wait while a large request is in progress."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Iterator

import pytest

from urteil.broker import garbage_collection


class Node:
    """An object in a reference cycle; only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thresholds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = gc.get_threshold()
    monkeypatch.setattr(garbage_collection, "LOOK_S", 0.0)
    garbage_collection.begin()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.collect()  # now, lest the unfrozen objects delay a later test


def old_garbage() -> weakref.ref[Node]:
    """Create a cycle in the oldest generation, after as many collections as Python's threshold."""
    made = Node()
    reference = weakref.ref(made)
    for _ in range(garbage_collection.OLD + 2):
        gc.collect(1)
    return reference


async def collected(reference: weakref.ref[Node], *, is_busy: bool) -> bool:
    task = asyncio.create_task(garbage_collection.collect(lambda: is_busy))
    for _ in range(5):
        await asyncio.sleep(0)
        old_garbage()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return reference() is None


def test_old_garbage_is_collected_without_large_requests() -> None:
    assert asyncio.run(collected(old_garbage(), is_busy=False))


def test_old_garbage_stays_during_a_large_request() -> None:
    assert not asyncio.run(collected(old_garbage(), is_busy=True))


def test_heap_growth_starts_no_full_collection() -> None:
    before = gc.get_stats()[2]["collections"]
    kept = [Node() for _ in range(100_000)]
    assert gc.get_stats()[2]["collections"] == before
    assert len(kept) == 100_000
