"""How often every API was asked, and how long requests waited and ran."""

from __future__ import annotations

from collections import deque
from typing import Any

from urteil.broker.wire.api_keys import ApiKey

RECENT = 1028
"""Requests of an API and version that quantiles are taken from: as many as Kafka samples."""

FOLLOWER_FETCH = -1
"""Stands for an API key: Apache Kafka counts the fetches of followers apart as well."""

Times = tuple[float, float, float]
"""Of one request in s: from arrival until it was begun; from then until the answer; and how long
of the latter it waited for others (replicas, records, members of a group, the controller)."""

AT_ONCE: Times = (0.0, 0.0, 0.0)
_FETCH = int(ApiKey.FETCH)


class ApiRequests:
    """One API at one version: how many requests, and the times of the newest `RECENT`."""

    __slots__ = ("count", "recent")

    def __init__(self) -> None:
        self.count = 0
        self.recent: deque[Times] = deque(maxlen=RECENT)


class RequestCounts:
    """All requests that were answered; `busy_s` is how long their handlers ran, all together."""

    __slots__ = ("_asked", "busy_s")

    def __init__(self) -> None:
        self._asked: dict[int, ApiRequests] = {}
        self.busy_s = 0.0

    def answered(
        self, kind: int, arrived_s: float, began_s: float, waited_s: float, ended_s: float
    ) -> None:
        """Count a request of `kind_of`; the loop's clock when it came, was begun and answered.

        That clock counts whole ms (uvloop's does), so it mostly stands still meanwhile.
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
        """What was asked, by API key (or `FOLLOWER_FETCH`) and version."""
        found: dict[int, dict[int, ApiRequests]] = {}
        for kind, asked in sorted(self._asked.items()):
            found.setdefault(kind >> 16, {})[kind & 0xFFFF] = asked
        return found


def kind_of(api: int, version: int, request: Any) -> int:
    """The API key, or what stands for it, and the version in one number."""
    if api == _FETCH:
        replica = request.replica_state.replica_id if version >= 15 else request.replica_id
        if replica >= 0:
            api = FOLLOWER_FETCH
    return api << 16 | version
