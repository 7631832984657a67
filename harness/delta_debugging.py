"""Delta debugging: finds the smallest set that still fails, by trying ever smaller subsets.

A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def minimise(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A subset of `items`, in their order, that still fails and needs every one of its items.

    `items` themselves are assumed to fail. The empty set is not tried. Deterministic: the same
    results lead to the same tries.
    """
    items_kept = tuple(items)
    count = 2
    while len(items_kept) >= 2:
        chunks = _split(items_kept, count)
        smaller = next((chunk for chunk in chunks if fails(chunk)), None)
        if smaller is not None:
            items_kept, count = smaller, 2
            continue
        remainders = (
            [_without_chunk(items_kept, chunks, n) for n in range(len(chunks))] if count > 2 else []
        )
        remainder = next((remainder for remainder in remainders if fails(remainder)), None)
        if remainder is not None:
            items_kept, count = remainder, max(count - 1, 2)
        elif count >= len(items_kept):
            break
        else:
            count = min(len(items_kept), 2 * count)
    return items_kept


def halve(value: float, least: float, fails: Callable[[float], bool]) -> float:
    """`value`, halved as long as it fails and is not below `least`."""
    while value / 2 >= least and fails(value / 2):
        value /= 2
    return value


def _split(items: tuple[T, ...], count: int) -> list[tuple[T, ...]]:
    edges = [round(n * len(items) / count) for n in range(count + 1)]
    return [items[a:b] for a, b in pairwise(edges) if a < b]


def _without_chunk(items: tuple[T, ...], chunks: list[tuple[T, ...]], n: int) -> tuple[T, ...]:
    return tuple(item for m, chunk in enumerate(chunks) if m != n for item in chunk)
