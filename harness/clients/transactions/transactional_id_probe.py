"""Whether each transactional id can be initialised when all transactions have ended.

A coordinator that never finishes a transaction answers CONCURRENT_TRANSACTIONS to every producer
with that id, even if all markers are written. The result is journaled as an act of the lab.
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

REQUEST_S = 5.0
POLL_S = 0.2
UNFINISHED = {14: "COORDINATOR_LOAD_IN_PROGRESS", 51: "CONCURRENT_TRANSACTIONS"}
"""Only a coordinator returns these errors, for unfinished work."""


def initialise_ids(
    bootstrap: Sequence[str], ids: Collection[str], timeout_ms: int, *, deadline_s: float
) -> list[dict[str, Any]]:
    """Initialise a producer with each id. Returns an act for each id: `ok`, `fail` if its
    coordinator was not finished until the deadline, `info` if no coordinator responded."""
    began_ns, deadline = time.monotonic_ns(), time.monotonic() + deadline_s
    acts: dict[str, dict[str, Any]] = {}
    remaining = sorted(ids)
    while True:
        for one in remaining:
            acts[one] = _initialise(bootstrap, one, timeout_ms) | {"invoke_ns": began_ns}
        remaining = [one for one in remaining if acts[one]["outcome"] != "ok"]
        if not remaining or time.monotonic() > deadline:
            return list(acts.values())
        threading.Event().wait(POLL_S)


def _initialise(bootstrap: Sequence[str], transactional_id: str, timeout_ms: int) -> dict[str, Any]:
    """Send the request to every broker until one responds as coordinator."""
    outcome, error_name = "info", "no coordinator answered"
    for address in bootstrap:
        error = _request_error(address, init_producer_id_request(transactional_id, timeout_ms))
        if error == 0:
            outcome, error_name = "ok", ""
            break
        if error in UNFINISHED:
            outcome, error_name = "fail", UNFINISHED[error]
    return {
        "complete_ns": time.monotonic_ns(),
        "outcome": outcome,
        "act": INITIALISE,
        "subject": transactional_id,
        "after": json.dumps({"failure": error_name} if error_name else {}),
    }


def _request_error(address: str, request: bytes) -> int | None:
    try:
        connection = Connection(address, REQUEST_S)
    except OSError:
        return None
    try:
        return read_error(INIT_PRODUCER_ID, connection.call(request), "")
    except (OSError, struct.error):
        return None
    finally:
        connection.close()
