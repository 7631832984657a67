"""How a producer that was shut out is told so."""

from __future__ import annotations

from urteil.broker.wire.errors import ErrorCode


def fencing_error(error: ErrorCode, *, knows: bool) -> ErrorCode:
    """PRODUCER_FENCED came late: clients that do not know it hear INVALID_PRODUCER_EPOCH."""
    if error is ErrorCode.PRODUCER_FENCED and not knows:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
