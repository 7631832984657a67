"""Counters of elections by this broker as controller, over all its terms."""

from __future__ import annotations

from collections import deque

RECENT = 1028
"""How many durations the percentiles cover: the size of Apache Kafka's histograms."""


class Elections:
    """`rounds` counts elections after changes of live brokers, `recent` has the duration of the
    newest ones in s, and `unclean` counts partitions whose new leader was not in sync.

    Source: `ControllerStats`, whose LeaderElectionRateAndTimeMs also counts such rounds, not
    partitions.
    """

    __slots__ = ("recent", "rounds", "unclean")

    def __init__(self) -> None:
        self.rounds = 0
        self.unclean = 0
        self.recent: deque[float] = deque(maxlen=RECENT)

    def count_round(self, took_s: float) -> None:
        """Count a round."""
        self.rounds += 1
        self.recent.append(took_s)
