"""A leader's state of one follower: its fetched offset and when it was last caught up."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class FollowerState:
    """A follower's progress by its fetches (source: Kafka's `Replica`).

    A fetch at offset n proves only that the follower has all records below n, in the broker session
    of its `broker_epoch` (-1 if the fetch has none).
    """

    broker_id: int
    end_offset: int = UNKNOWN_OFFSET
    start_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: float = 0.0
    last_fetch_leader_end: int = 0
    last_caught_up_ms: float = 0.0
    broker_epoch: int = -1

    def reset(
        self, now_ms: float, leader_end: int, *, is_new_leader: bool, is_in_sync: bool
    ) -> None:
        """Begin a new leader epoch: members of the ISR count as caught up for one lag time."""
        if is_new_leader:
            self.end_offset = self.start_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_end = 0
            self.last_fetch_ms = 0.0
        else:
            self.last_fetch_leader_end = leader_end
            self.last_fetch_ms = now_ms if is_in_sync else 0.0
        self.last_caught_up_ms = now_ms if is_in_sync else float("-inf")

    def record_fetch(
        self, fetch_offset: int, start_offset: int, now_ms: float, leader_end: int
    ) -> None:
        """Record a fetch.

        The follower is caught up if it fetches at the leader's end, or at the end as of its
        previous fetch; it was then caught up at the time of that fetch.
        """
        if fetch_offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = fetch_offset
        self.start_offset = start_offset
        self.last_fetch_leader_end = leader_end
        self.last_fetch_ms = now_ms

    def is_caught_up(self, leader_end: int, now_ms: float, max_lag_ms: float) -> bool:
        return self.end_offset == leader_end or now_ms - self.last_caught_up_ms <= max_lag_ms
