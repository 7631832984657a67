"""How long clients wait for the answer to a send, for reference checks."""

from __future__ import annotations

from urteil.harness.verify.limits import FOREVER_NS, REFUSALS
from urteil.harness.verify.reference import Row, SmallHistory


def end_of_wait_ns(history: SmallHistory, send: Row) -> int:
    """Until when a client waits for the answer to a send: a killed client waits no more."""
    if send.complete_ns is not None:
        return int(send.complete_ns)
    is_killed = any(row.client == send.client for row in history.derived_rows("killed"))
    return int(send.invoke_ns) if is_killed else FOREVER_NS


def is_refused(send: Row) -> bool:
    """Whether a broker refused a send for its content."""
    error = (send.error or "").replace("_", "").upper()
    return send.outcome == "fail" and any(word in error for word in REFUSALS)
