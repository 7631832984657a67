"""The threads of a judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


@contextmanager
def threads(number: int) -> Iterator[ThreadPool]:
    """So many, waited for at the end. Unlike those of `concurrent.futures`, one that is stuck does
    not keep the process from ending."""
    pool = ThreadPool(number)
    try:
        yield pool
    finally:
        pool.close()
        pool.join()


def map_in_order(number: int, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """`function` of each item, in their order, by so many threads; by the caller's where it is
    one."""
    if number == 1:
        return [function(item) for item in items]
    with threads(number) as pool:
        return pool.map(function, items, chunksize=1)
