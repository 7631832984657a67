"""Apache Kafka without ZooKeeper: nodes are brokers, controllers of KRaft's quorum, or both.

A node's log directories are formatted without a JVM (`kraft_storage`). Those of 3.9 and of brokers
that are not controllers need `meta.properties` alone: without a bootstrap file, the first active
controller writes the release's own metadata version. The metadata log keeps all its records, in one
segment and without further snapshots: it is evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from urteil.harness.dependencies.kafka import kafka_format
from urteil.harness.dependencies.kafka_releases import LINES, abbreviate, release_line
from urteil.harness.dependencies.kraft_storage import format_directory
from urteil.harness.targets.kafka import KafkaTarget
from urteil.harness.targets.target import AUTHORIZER, BrokerNode

KEEP_ALL = {
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "9223372036854775807",
}

OWN_CLASSES = {AUTHORIZER: "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
"""The class of KRaft for one that keeps its data in ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftTarget(KafkaTarget):
    """The quorum's voters are static."""

    name: str = "kafka-kraft"
    waits_for_own_znode: bool = False
    lost_session: str = ""
    has_zookeeper: bool = False

    def __post_init__(self) -> None:
        if not release_line(self.version).has_kraft:
            lines = abbreviate(line for line in LINES if line.has_kraft)
            raise ValueError(
                f"the lab starts Apache Kafka {lines} without ZooKeeper, not {self.version}: "
                f"--target kafka:{self.version} has ZooKeeper"
            )

    def knows_setting(self, setting: str) -> bool:
        return setting in OWN_CLASSES or super(KraftTarget, self).knows_setting(setting)

    def own_class(self, value: str) -> str:
        return OWN_CLASSES.get(value, value)

    def properties(self, node: BrokerNode) -> dict[str, str]:
        return {**super(KraftTarget, self).properties(node), **KEEP_ALL}

    def format(self, node: BrokerNode, log_dir: Path) -> None:
        """As Kafka's StorageTool does, from files that it left once."""
        name = f"{node.name}/{log_dir.name}"
        formatted = kafka_format(self.version) if node.is_voter else None
        format_directory(log_dir, formatted, node_id=node.broker_id, name=name)
