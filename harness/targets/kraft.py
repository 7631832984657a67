"""Apache Kafka without ZooKeeper: every node is a broker and a controller of KRaft's quorum.

A node's log directories are formatted by their `meta.properties` alone, which needs no JVM: without
a bootstrap file, the first active controller writes the release's own metadata version. The
metadata log keeps all its records, in one segment and without snapshots: it is evidence.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

from urteil.harness.dependencies.kafka_releases import release_line
from urteil.harness.targets.kafka import KafkaTarget
from urteil.harness.targets.target import BrokerNode

LINE = "3.9"
"""The line of releases that the lab starts: an earlier one does not advertise controllers."""
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
KEEP_ALL = {
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "9223372036854775807",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftTarget(KafkaTarget):
    """Combined nodes. The quorum's voters are static."""

    name: str = "kafka-kraft"
    waits_for_own_znode: bool = False
    lost_session: str = ""
    has_zookeeper: bool = False

    def __post_init__(self) -> None:
        releases = release_line(f"{LINE}.1").versions
        if self.version not in releases:
            raise ValueError(
                f"the lab starts Apache Kafka {' and '.join(releases)} without ZooKeeper, not "
                f"{self.version}; --target kafka:{self.version} has ZooKeeper, if it is a release "
                "before 4.0"
            )

    def properties(self, node: BrokerNode) -> dict[str, str]:
        return {**super(KraftTarget, self).properties(node), **KEEP_ALL}

    def format(self, node: BrokerNode, log_dir: Path) -> None:
        """Write `meta.properties` into a log directory that has none."""
        file = log_dir / "meta.properties"
        if file.exists():
            return
        name = f"{node.name}/{log_dir.name}"
        directory = uuid.uuid5(uuid.NAMESPACE_OID, name).bytes
        lines = [
            "version=1",
            f"cluster.id={CLUSTER_ID}",
            f"node.id={node.broker_id}",
            f"directory.id={urlsafe_b64encode(directory).decode().rstrip('=')}",
        ]
        file.write_text("\n".join(lines) + "\n")
