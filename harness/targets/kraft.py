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

from urteil.harness.targets.kafka import KafkaTarget
from urteil.harness.targets.target import BrokerNode

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
