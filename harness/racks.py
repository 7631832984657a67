"""Racks of brokers: a rack for each, and consumers that fetch from the replica in their rack."""

from __future__ import annotations

RACK = "rack"
"""The rack of broker n, and of reader n, is this and n."""
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def rack_properties(broker_id: int) -> dict[str, str]:
    """A rack for each broker. Consumers fetch from the replica in their rack."""
    return {"broker.rack": f"{RACK}{broker_id}", "replica.selector.class": RACK_AWARE}
