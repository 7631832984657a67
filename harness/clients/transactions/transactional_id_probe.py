"""Whether each transactional id is to be had again, once all transactions are over.

A coordinator that never gets done with a transaction answers CONCURRENT_TRANSACTIONS to whoever
wants its id, for ever, though every marker may be written. What came of it is an act of the lab's.
"""

from __future__ import annotations

import json
import struct
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any

from urteil.harness.evidence.journal import INITIALISE
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.transaction_requests import (
    INIT_PRODUCER_ID,
    init_producer_id_request,
    read_error,
)

ASK_S = 5.0
POLL_S = 0.2
UNDER_WAY = {14: "COORDINATOR_LOAD_IN_PROGRESS", 51: "CONCURRENT_TRANSACTIONS"}
"""Only a coordinator says so, of what it has still to do."""


def regain(
    bootstrap: Sequence[str], ids: Collection[str], timeout_ms: int, *, deadline_s: float
) -> list[dict[str, Any]]:
    """Initialise a producer with each id; an act for each: `ok`, `fail` where its coordinator was
    still not done with it in the end, `info` where no coordinator answered."""
    began_ns, deadline = time.monotonic_ns(), time.monotonic() + deadline_s
    acts: dict[str, dict[str, Any]] = {}
    left = sorted(ids)
    while True:
        for one in left:
            acts[one] = _once(bootstrap, one, timeout_ms) | {"invoke_ns": began_ns}
        left = [one for one in left if acts[one]["outcome"] != "ok"]
        if not left or time.monotonic() > deadline:
            return list(acts.values())
        threading.Event().wait(POLL_S)


def _once(bootstrap: Sequence[str], transactional_id: str, timeout_ms: int) -> dict[str, Any]:
    """Ask every broker until one answers as coordinator."""
    outcome, told = "info", "no coordinator answered"
    for address in bootstrap:
        error = _ask(address, init_producer_id_request(transactional_id, timeout_ms))
        if error == 0:
            outcome, told = "ok", ""
            break
        if error in UNDER_WAY:
            outcome, told = "fail", UNDER_WAY[error]
    return {
        "complete_ns": time.monotonic_ns(),
        "outcome": outcome,
        "act": INITIALISE,
        "subject": transactional_id,
        "after": json.dumps({"failure": told} if told else {}),
    }


def _ask(address: str, request: bytes) -> int | None:
    try:
        wire = Connection(address, ASK_S)
    except OSError:
        return None
    try:
        return read_error(INIT_PRODUCER_ID, wire.call(request), "")
    except (OSError, struct.error):
        return None
    finally:
        wire.close()
