"""Apache Kafka without ZooKeeper: nodes are brokers, controllers of KRaft's quorum, or both.

The lab formats a node's log directories without a JVM (`kraft_storage`). Releases until 3.9, and
brokers that are not controllers, need only `meta.properties`: without a bootstrap file, the first
active controller writes the release's metadata version. The metadata log is evidence, so it keeps
all its records, in one segment and without further snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from urteil.harness.dependencies.kafka import kafka_format
from urteil.harness.dependencies.kafka_releases import (
    LINES,
    NEWEST,
    abbreviate,
    parse_version,
    release_line,
)
from urteil.harness.dependencies.kraft_storage import META, directory_id, format_directory
from urteil.harness.evidence.readers.metadata_log import read_features
from urteil.harness.targets.kafka import KafkaTarget
from urteil.harness.targets.quorum_checkpoint import Voter, write_checkpoint
from urteil.harness.targets.target import (
    ADVERTISED,
    AUTHORIZER,
    CONTROLLER,
    BrokerNode,
    advertised,
)

KEEP_ALL = {
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "9223372036854775807",
}

ADVERTISES_CONTROLLERS = (3, 9)
"""The first release that accepts a controller's listener in `advertised.listeners` (KIP-853)."""

KRAFT_CLASSES = {AUTHORIZER: "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
"""KRaft's class in place of one that stores its data in ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftTarget(KafkaTarget):
    """The quorum's voters are static, or dynamic (`BrokerNode.has_dynamic_quorum`)."""

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
        return setting in KRAFT_CLASSES or super(KraftTarget, self).knows_setting(setting)

    def translate_class(self, value: str) -> str:
        return KRAFT_CLASSES.get(value, value)

    def previous_release(self) -> KraftTarget:
        """The last release before 4.0, from which an upgrade to any later one is supported."""
        if release_line(self.version).has_zookeeper:
            raise ValueError(
                f"the lab upgrades clusters without ZooKeeper from {NEWEST} to 4.0 and later "
                f"releases, not to {self.version}"
            )
        return replace(self, version=NEWEST)

    def older_protocol(self) -> dict[str, str]:
        return {}

    def features(self) -> dict[str, int]:
        """The levels in the files that the release's own StorageTool writes. Until 3.9 it writes
        none."""
        formatted = kafka_format(self.version)
        snapshots = [] if formatted is None else sorted(formatted.rglob("*.checkpoint"))
        return read_features(snapshots, self.version)

    def properties(self, node: BrokerNode) -> dict[str, str]:
        settings = {**super(KraftTarget, self).properties(node), **KEEP_ALL}
        if parse_version(self.version) < ADVERTISES_CONTROLLERS:
            settings[ADVERTISED] = advertised(
                listener for listener in node.listeners if listener.name != CONTROLLER
            )
        return settings

    def format(self, node: BrokerNode, log_dir: Path, *, former_starts: int) -> None:
        """Write the files that Kafka's StorageTool writes, from a copy of its output.

        A controller of a dynamic quorum that lost its disk gets a new directory id, and is no voter
        until an administrator adds it.
        """
        if (log_dir / META).exists():
            return
        name = _directory_name(node.name, log_dir)
        if former_starts:
            name = f"{name}/{former_starts}"
        formatted = kafka_format(self.version) if node.is_voter else None
        format_directory(log_dir, formatted, node_id=node.broker_id, name=name)
        if node.is_voter and node.has_dynamic_quorum:
            voters = [] if former_starts else _first_voters(node, log_dir)
            write_checkpoint(log_dir, self.version, voters, listener=CONTROLLER)


def _directory_name(node: str, log_dir: Path) -> str:
    return f"{node}/{log_dir.name}"


def _first_voters(node: BrokerNode, log_dir: Path) -> list[Voter]:
    """The initial voters of the quorum. Their log directories have the same names."""
    voters = []
    for voter in node.quorum_voters.split(","):
        number, _, address = voter.partition("@")
        host, _, port = address.rpartition(":")
        directory = directory_id(_directory_name(host, log_dir))
        voters.append(Voter(node=int(number), directory=directory, host=host, port=int(port)))
    return voters
