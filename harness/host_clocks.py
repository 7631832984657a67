"""Evidence about the clocks of hosts: how far each was from the lab's, every few seconds.

Evidence has one clock, the lab's. What a host stamps with its own wall clock, as ZooKeeper does its
transactions, is compared with the lab's times, and checks allow for clocks that differ a little. A
host whose clock is further away makes these comparisons undecidable.
"""

from __future__ import annotations

FILE = "host_samples.jsonl"
"""In the run's folder: rows of `samples` whose source is a host, of clocks and of load."""
WALL_OFFSET, MONOTONIC_OFFSET, BOUND = "wall_offset_s", "monotonic_offset_s", "clock_bound_s"
"""A host's clock less the lab's, in seconds, both true within the bound."""
MOST_OFFSET_NS = 100_000_000
"""A wall clock that differs by less disturbs no check."""
