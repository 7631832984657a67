"""Answers about a part file, computed once for each version of the file.

A judgement reads the same small files many times: validation, derived tables and guarantees each
start from the run's folder. A function of a part file alone is therefore computed once and its
answer stored under the file's version and the other arguments. Callers do not change an answer.
Answers about large parts are not stored, so that memory does not follow the load.
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
MOST_ANSWERS = 64
MOST_SMALL_ANSWERS = 512
"""Stored answers of one function; the one unused for longest is dropped first."""


def version(part: Path) -> tuple[Any, ...]:
    """What changes whenever the file is written anew: path, inode, size, time of the last change.
    Raises OSError."""
    about = os.stat(part)
    return os.fspath(part), about.st_ino, about.st_size, about.st_mtime_ns


def is_small(part: Path) -> bool:
    """Whether answers about the part are stored."""
    return os.stat(part).st_size <= SMALL_BYTES


def once_a_version(
    compute: Callable[Concatenate[Path, P], T],
) -> Callable[Concatenate[Path, P], T]:
    """`compute`, called once for each version of a small part. What it raises is not stored."""
    stored = _cache_answers(compute, MOST_ANSWERS)

    @functools.wraps(compute)
    def answer(part: Path, /, *args: P.args, **options: P.kwargs) -> T:
        return (stored if is_small(part) else compute)(part, *args, **options)

    return answer


def once_a_version_of_any_size(
    compute: Callable[Concatenate[Path, P], T],
) -> Callable[Concatenate[Path, P], T]:
    """`compute`, called once for each version of a part: for answers that are always small."""
    return _cache_answers(compute, MOST_SMALL_ANSWERS)


def _cache_answers(
    compute: Callable[Concatenate[Path, P], T], most: int
) -> Callable[Concatenate[Path, P], T]:
    answers: OrderedDict[tuple[Any, ...], T] = OrderedDict()
    lock = threading.Lock()

    @functools.wraps(compute)
    def answer(part: Path, /, *args: P.args, **options: P.kwargs) -> T:
        key = (version(part), args, *options.items())
        with lock:
            if key in answers:
                answers.move_to_end(key)
                return answers[key]
        computed = compute(part, *args, **options)
        with lock:
            answers[key] = computed
            while len(answers) > most:
                answers.popitem(last=False)
        return computed

    return answer
