"""Caches the results of functions of a part file, for each version of the file.

A judgement reads the same small files many times: validation, derived tables and guarantees each
start from the run's folder. The result of a function that depends only on a part file and its
arguments is therefore cached under the file's version and the arguments. Callers must not change a
result. Results for large parts are not cached, so that memory does not grow with the load.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SMALL_BYTES = 65_536
"""Parts up to this size are small."""
MOST_RESULTS = 64
MOST_SMALL_RESULTS = 512
"""Cached results of one function. The least recently used is dropped first."""


def version(part: Path) -> tuple[Any, ...]:
    """The version of a file: path, inode, size and time of the last change. Raises OSError."""
    status = os.stat(part)
    return os.fspath(part), status.st_ino, status.st_size, status.st_mtime_ns


def is_small(part: Path) -> bool:
    """Whether results for the part are cached."""
    return os.stat(part).st_size <= SMALL_BYTES


def once_a_version(
    compute: Callable[Concatenate[Path, P], T],
) -> Callable[Concatenate[Path, P], T]:
    """Cache the results of `compute` for each version of a small part, but no exceptions."""
    cached = _cache_results(compute, MOST_RESULTS)

    @functools.wraps(compute)
    def result(part: Path, /, *args: P.args, **options: P.kwargs) -> T:
        return (cached if is_small(part) else compute)(part, *args, **options)

    return result


def once_a_version_of_any_size(
    compute: Callable[Concatenate[Path, P], T],
) -> Callable[Concatenate[Path, P], T]:
    """Cache the results of `compute` for each version of any part: for results that are small."""
    return _cache_results(compute, MOST_SMALL_RESULTS)


def _cache_results(
    compute: Callable[Concatenate[Path, P], T], most: int
) -> Callable[Concatenate[Path, P], T]:
    results: OrderedDict[tuple[Any, ...], T] = OrderedDict()
    lock = threading.Lock()

    @functools.wraps(compute)
    def result(part: Path, /, *args: P.args, **options: P.kwargs) -> T:
        key = (version(part), args, *options.items())
        with lock:
            if key in results:
                results.move_to_end(key)
                return results[key]
        computed = compute(part, *args, **options)
        with lock:
            results[key] = computed
            while len(results) > most:
                results.popitem(last=False)
        return computed

    return result
