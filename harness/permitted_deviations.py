"""The deviations that settings and faults of a scenario permit.

Guarantees name them, and are read by the simulation, whose Python has none of the lab's packages;
`permits.py` derives those of a scenario.
"""

from __future__ import annotations

from enum import Enum


class Permit(Enum):
    """A deviation that settings or faults permit. The value says which, and why."""

    ACKS_ZERO = "acks=0: records may be lost, and overtake each other"
    ACKS_ONE = "acks=1: the end of a log may be lost with its leader, and its offsets used again"
    RETRIES = "without idempotence: a retry may append a record twice"
    IN_FLIGHT = "several requests in flight without idempotence: a retry may change the order"
    UNCLEAN_ELECTION = "unclean elections: a leader may lack acknowledged records"
    LOST_DISKS = "a fault may take records from the disk of the last replica in sync"
    COMMITS_FIRST = "the group commits before it processes: records may be skipped"
    LATE_ENDS = "transactions of protocol 3.9: a late end may arrive in the next one (KAFKA-17754)"
    DELETION = "retention or administrators delete records"
    COMPACTION = "the cleaner deletes superseded values"
    STANDSTILL = "acks=all needs replicas that a single fault takes away: writes may stand still"
