"""How long clients wait for the answer to a send, for reference checks."""

from __future__ import annotations

from urteil.harness.verify.limits import FOREVER_NS, REFUSALS
from urteil.harness.verify.reference import Row, SmallHistory


def end_of_wait_ns(history: SmallHistory, send: Row) -> int:
    """The end of the wait for the answer to a send; a killed client does not wait."""
    if send.complete_ns is not None:
        return int(send.complete_ns)
    is_killed = any(row.client == send.client for row in history.derived_rows("killed"))
    return int(send.invoke_ns) if is_killed else FOREVER_NS


def is_refused(send: Row) -> bool:
    """Whether a broker rejected a send for its content."""
    error = (send.error or "").replace("_", "").upper()
    return send.outcome == "fail" and any(word in error for word in REFUSALS)


def plain_producers(history: SmallHistory) -> dict[tuple[str, int], int]:
    """The sessions of producers without transactions that ended, each with its end in ns."""
    return {
        (row.client, row.session): row.end_ns
        for row in history.clients
        if row.kind == "producer" and row.transactional_id is None and row.end_ns is not None
    }
