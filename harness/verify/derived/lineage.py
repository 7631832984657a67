"""The offset up to which two logs of one partition agree, by their leader epochs (KIP-101)."""

from __future__ import annotations

from collections.abc import Mapping

Epochs = Mapping[int, int]
"""Leader epoch to the offset at which it began."""


def agreed_end(epochs: Epochs, end: int, other: Epochs, other_end: int) -> int:
    """The offset to which a follower with one log truncates under a leader with the other.

    That is the end, in the shorter of them, of the last epoch that both contain; 0 without any.
    """
    common = epochs.keys() & other.keys()
    if not common:
        return 0
    last = max(common)
    return min(_end_of(last, epochs, end), _end_of(last, other, other_end))


def _end_of(epoch: int, epochs: Epochs, log_end: int) -> int:
    return min((start for later, start in epochs.items() if later > epoch), default=log_end)
