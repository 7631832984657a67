"""Topics that damages add to a copy. The facts of the copy must contain them."""

from __future__ import annotations

from urteil.harness.scenario import TopicFact

COMPACTED = TopicFact(
    name="compacted",
    topic_id="made-up-compacted",
    partitions=1,
    replication_factor=3,
    config={"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"},
)
RETAINED = TopicFact(
    name="retained",
    topic_id="made-up-retained",
    partitions=1,
    replication_factor=3,
    config={"retention.ms": "86400000", "max.message.bytes": "1048588"},
)
MADE_UP_TOPICS = (COMPACTED, RETAINED)
MADE_UP_IDS = frozenset(topic.topic_id for topic in MADE_UP_TOPICS)
