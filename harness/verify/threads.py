"""Pools of threads for a judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


@contextmanager
def threads(number: int) -> Iterator[ThreadPool]:
    """A pool of `number` threads, joined at the end.

    Unlike a thread of `concurrent.futures`, a stuck thread does not keep the process from ending.
    """
    pool = ThreadPool(number)
    try:
        yield pool
    finally:
        pool.close()
        pool.join()


def map_in_order(number: int, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """The results of `function` in the order of `items`, computed by `number` threads. With one
    thread the caller computes them."""
    if number == 1:
        return [function(item) for item in items]
    with threads(number) as pool:
        return pool.map(function, items, chunksize=1)
