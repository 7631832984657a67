"""What this broker did as controller, through all its terms."""

from __future__ import annotations

from collections import deque

RECENT = 1028
"""How many times are kept for the percentiles: the size of Apache Kafka's histograms."""


class Elections:
    """`rounds`: how often leaders were elected anew because brokers came or went, and how long the
    newest of these took, in s; `unclean`: partitions given to a replica that was not in sync.

    Source: `ControllerStats`, whose LeaderElectionRateAndTimeMs counts such rounds as well, not
    partitions.
    """

    __slots__ = ("recent", "rounds", "unclean")

    def __init__(self) -> None:
        self.rounds = 0
        self.unclean = 0
        self.recent: deque[float] = deque(maxlen=RECENT)

    def held(self, took_s: float) -> None:
        """A round ended."""
        self.rounds += 1
        self.recent.append(took_s)
