"""Topics that damages add to a copy, and settings of its brokers. The facts and the scenario of the
copy must contain them."""

from __future__ import annotations

from urteil.harness.scenario import TopicFact

MADE_UP_SETTINGS = {"log.cleanup.policy": "delete", "log.retention.check.interval.ms": "1000"}
COMPACTED = TopicFact(
    name="made-up-compacted",
    topic_id="made-up-compacted",
    partitions=1,
    replication_factor=3,
    config={"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"},
)
RETAINED = TopicFact(
    name="made-up-retained",
    topic_id="made-up-retained",
    partitions=1,
    replication_factor=3,
    config={
        "retention.ms": "86400000",
        "max.message.bytes": "1048588",
        "segment.ms": "604800000",
        "unclean.leader.election.enable": "true",
    },
)
BOUNDED = TopicFact(
    name="made-up-bounded",
    topic_id="made-up-bounded",
    partitions=1,
    replication_factor=3,
    config={"retention.bytes": "1048576"},
)
MIRROR = "made-up-mirror"
"""The id of the mirror of the copy's own topic."""


def mirror_of(topic: TopicFact) -> TopicFact:
    """The mirror of a topic of the first cluster."""
    return TopicFact(
        name=f"{topic.cluster}.{topic.name}",
        topic_id=MIRROR,
        partitions=topic.partitions,
        replication_factor=1,
        config={"cleanup.policy": "delete"},
        copies=True,
        cluster="west",
    )


MADE_UP_TOPICS = (COMPACTED, RETAINED, BOUNDED)
DELETED = "made-up-deleted"
"""Name and id of a topic that does not exist any more."""
MADE_UP_IDS = frozenset({DELETED, MIRROR, *(topic.topic_id for topic in MADE_UP_TOPICS)})
