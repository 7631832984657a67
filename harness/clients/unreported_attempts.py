"""Completions by client libraries that tell little of them."""

from __future__ import annotations

import time

from urteil.harness.evidence.journal import Fail, Info, Ok

UNTOLD = -1
"""`attempts` of a client that does not tell them."""

REPEATED = "attempts are not told"
"""What stands as error of a commit that such a client may have repeated."""


def ended(
    kind: type[Ok] | type[Fail] | type[Info],
    op: int,
    error: str | None,
    partition: int,
    offset: int | None = None,
    attempts: int = UNTOLD,
) -> Ok | Fail | Info:
    """A completion with what such a library tells. Unless nothing was ever sent (`attempts` 0),
    an earlier attempt may have been written."""
    return kind(op, time.monotonic_ns(), error, attempts, attempts != 0, partition, offset,
                None, None, None, None, None)  # fmt: skip
