"""The error for a fenced producer, by the version of its request."""

from __future__ import annotations

from urteil.broker.wire.errors import ErrorCode


def fencing_error(error: ErrorCode, *, knows: bool) -> ErrorCode:
    """Older clients do not know PRODUCER_FENCED and receive INVALID_PRODUCER_EPOCH."""
    if error is ErrorCode.PRODUCER_FENCED and not knows:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
