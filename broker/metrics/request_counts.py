"""Counts of requests by API and version, with their queue, processing and remote times."""

from __future__ import annotations

from collections import deque
from typing import Any

from urteil.broker.wire.api_keys import ApiKey

RECENT = 1028
"""How many requests of an API and version quantiles cover: the size of Kafka's histograms."""

FOLLOWER_FETCH = -1
"""In place of an API key: Apache Kafka counts fetches of followers separately."""

Times = tuple[float, float, float]
"""Times of one request in s: from arrival to its start; from then to its response; and the part of
the latter that it waited for others (replicas, records, group members, the controller)."""

AT_ONCE: Times = (0.0, 0.0, 0.0)
_FETCH = int(ApiKey.FETCH)


class ApiRequests:
    """One API at one version: the number of requests, and the times of the newest `RECENT`."""

    __slots__ = ("count", "recent")

    def __init__(self) -> None:
        self.count = 0
        self.recent: deque[Times] = deque(maxlen=RECENT)


class RequestCounts:
    """Counts of all answered requests; `busy_s` is the total time of their handlers."""

    __slots__ = ("_asked", "busy_s")

    def __init__(self) -> None:
        self._asked: dict[int, ApiRequests] = {}
        self.busy_s = 0.0

    def count_request(
        self, kind: int, arrived_s: float, began_s: float, waited_s: float, ended_s: float
    ) -> None:
        """Count a request of `kind_of`, with its arrival, start and end by the loop's clock.

        uvloop's clock has whole ms, so most durations are 0.
        """
        asked = self._asked.get(kind)
        if asked is None:
            asked = self._asked[kind] = ApiRequests()
        asked.count += 1
        if ended_s == arrived_s:
            asked.recent.append(AT_ONCE)
        else:
            took_s = ended_s - began_s
            asked.recent.append((began_s - arrived_s, took_s, waited_s))
            self.busy_s += took_s - waited_s

    def by_api(self) -> dict[int, dict[int, ApiRequests]]:
        """Return the requests by API key (or `FOLLOWER_FETCH`) and version."""
        by_key: dict[int, dict[int, ApiRequests]] = {}
        for kind, asked in sorted(self._asked.items()):
            by_key.setdefault(kind >> 16, {})[kind & 0xFFFF] = asked
        return by_key


def kind_of(api: int, version: int, request: Any) -> int:
    """Return the API key, or its substitute, and the version in one number."""
    if api == _FETCH:
        replica = request.replica_state.replica_id if version >= 15 else request.replica_id
        if replica >= 0:
            api = FOLLOWER_FETCH
    return api << 16 | version
