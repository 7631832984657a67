"""Connect's REST interface, asked at any worker that answers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any

from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until

TIMEOUT_S = 10.0
DEADLINE_S = 60.0
POLL_S = 0.3


class RequestRejected(Exception):
    """No worker served a request; the text is the last answer or error."""


def request(
    addresses: Iterable[str], method: str, path: str, body: Mapping[str, Any] | None = None
) -> Any:
    """The answer of the first worker that serves the request, None for an empty one.

    Raises RequestRejected: workers answer 409 during a rebalance.
    """
    error = "no worker"
    for address in addresses:
        call = urllib.request.Request(
            f"http://{address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        try:
            with _OPENER.open(call, timeout=TIMEOUT_S) as answer:
                content = answer.read()
        except urllib.error.HTTPError as failure:
            error = f"HTTP {failure.code}: {failure.read().decode(errors='replace')[:500]}"
        except (OSError, ValueError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        else:
            return json.loads(content) if content else None
    raise RequestRejected(f"{method} {path}: {error}")


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Without a proxy of the environment: all workers listen on loopback."""


def persist(
    addresses: Iterable[str], method: str, path: str, body: Mapping[str, Any] | None = None
) -> Any:
    """`request`, repeated until a worker serves it. LabFailure with the last answer at the
    deadline."""
    targets, last = list(addresses), ""

    def attempt() -> list[Any]:
        nonlocal last
        try:
            return [request(targets, method, path, body)]
        except RequestRejected as refused:
            last = str(refused)
            return []

    served = until(attempt, deadline_s=DEADLINE_S, poll_s=POLL_S)
    if not served:
        raise LabFailure(f"Kafka Connect served no request in {DEADLINE_S:g} s: {last}")
    return served[0]


def states(status: Mapping[str, Any]) -> dict[str, str]:
    """The states of a connector and of its tasks, by `connector`, `0`, `1` ..."""
    tasks = {str(task["id"]): task["state"] for task in status.get("tasks", [])}
    return {"connector": status["connector"]["state"], **tasks}
