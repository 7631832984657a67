"""Limits of numbers in the evidence. It imports nothing."""

from __future__ import annotations

FOREVER_NS = 1 << 62
"""Times in ns are below this."""

COUNT_END = 1 << 62
"""Counters of clients are below this."""

SECOND_ZXID = 1 << 48
"""Added to the zxids of a second cluster: the two logs have no order between them."""
