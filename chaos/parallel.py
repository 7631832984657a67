"""Acts on several items at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def run_on_all(act: Callable[[T], R], items: Iterable[T], *, at_once: int | None = None) -> list[R]:
    """Return the results of `act` for all items, in their order. Each item has a thread, at most
    `at_once` at a time; a single one runs in the caller's. Raises the first failure when all have
    ended."""
    listed = list(items)
    if len(listed) < 2:
        return [act(item) for item in listed]
    with ThreadPoolExecutor(min(len(listed), at_once or len(listed))) as pool:
        futures = [pool.submit(act, item) for item in listed]
    return [future.result() for future in futures]
