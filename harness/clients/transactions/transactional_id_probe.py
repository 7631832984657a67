"""Whether each transactional id can be initialised when all transactions have ended.

A coordinator that never finishes a transaction answers CONCURRENT_TRANSACTIONS to every producer
with that id, even if all markers are written. The result is journaled as an act of the lab.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Collection, Sequence
from typing import Any

from urteil.chaos.waiting import until
from urteil.harness.evidence.acts import INITIALISE
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
    began_ns = time.monotonic_ns()
    acts: dict[str, dict[str, Any]] = {}

    def initialise_remaining() -> bool:
        for transactional_id in sorted(ids):
            if transactional_id not in acts or acts[transactional_id]["outcome"] != "ok":
                acts[transactional_id] = _initialise(bootstrap, transactional_id, timeout_ms) | {
                    "invoke_ns": began_ns
                }
        return all(act["outcome"] == "ok" for act in acts.values())

    until(initialise_remaining, deadline_s=deadline_s, poll_s=POLL_S)
    return list(acts.values())


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
