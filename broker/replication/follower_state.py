"""What a leader knows of one follower: how far it fetched and when it was last caught up."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class FollowerState:
    """Follower's progress as seen by its fetches (source: Kafka's `Replica`).

    A fetch at offset n proves that the follower has everything below n, no more; and only of the
    life whose `broker_epoch` it bears (-1 if it bears none).
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
        """A new leader epoch began: members of the ISR get one lag time to prove themselves."""
        if is_new_leader:
            self.end_offset = self.start_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_end = 0
            self.last_fetch_ms = 0.0
        else:
            self.last_fetch_leader_end = leader_end
            self.last_fetch_ms = now_ms if is_in_sync else 0.0
        self.last_caught_up_ms = now_ms if is_in_sync else float("-inf")

    def fetched(self, fetch_offset: int, start_offset: int, now_ms: float, leader_end: int) -> None:
        """Take in a fetch.

        Caught up means: at the leader's end now, or at what was the leader's end at the fetch
        before, then as of that time.
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
