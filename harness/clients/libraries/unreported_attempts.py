"""Completions of client libraries that do not report their attempts."""

from __future__ import annotations

import time

from urteil.harness.evidence.journal import Fail, Info, Ok

UNREPORTED = -1
"""The value of `attempts` for a client that does not report them."""

POSSIBLY_REPEATED = "attempts are not told"
"""The `error` of an acknowledged commit that such a client may have repeated."""


def completion_without_attempts(
    kind: type[Ok] | type[Fail] | type[Info],
    op: int,
    error: str | None,
    partition: int,
    offset: int | None = None,
    attempts: int = UNREPORTED,
) -> Ok | Fail | Info:
    """A completion by a library without attempts. Unless nothing was sent (`attempts` 0), an
    earlier attempt may have been written."""
    return kind(op, time.monotonic_ns(), error, attempts, attempts != 0, partition, offset,
                None, None, None, None, None)  # fmt: skip
