"""Leadership that goes to another replica, and topics that go."""

from __future__ import annotations

from tests.conformance.side import Side
from tests.conformance.test_partitions import alter, elect, partitions


def next_leader(side: Side, topic: str, index: int) -> int:
    """The first other replica, which leads the partition now."""
    partition = partitions(side, topic)["partitions"][index]
    then, *others = (id for id in partition["replica_nodes"] if id != partition["leader_id"])
    alter(side, {(topic, index): [then, *others, partition["leader_id"]]})

    def leads() -> bool:
        elect(side, {topic: [index]}, 2)
        return side.serves(topic, index, then)

    side.until(leads)
    return int(then)


def is_deleted(side: Side, topic: str) -> bool:
    """From every broker, and from ZooKeeper."""
    if any(partitions(side, topic, to=to)["error_code"] == "NONE" for to in (1, 2, 3)):
        return False
    with side.znodes() as client:
        return not client.exists(f"/admin/delete_topics/{topic}")
