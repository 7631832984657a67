"""Threads that a judgement shares its questions among."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool


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
