"""What brokers of some releases cannot do, found by ApiVersions.

A capability is an API, or a version of one, that a broker serves. Faults, client kinds and
guarantees name the capabilities that they need (`needs`, `requires`). After its start the lab
requests the versions of every broker: a cluster lacks a capability if one broker lacks it. A
scenario that needs a missing capability is refused with the reason, and a guarantee that needs one
is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Versions = Mapping[int, int]
"""API key to the highest version that every broker serves."""


@dataclass(frozen=True, slots=True)
class Capability:
    """One row of the table. `since` is the first release of Apache Kafka with it."""

    name: str
    api: int
    version: int
    api_name: str
    since: str
    about: str

    @property
    def request(self) -> str:
        """The request that proves it: `ListOffsets 5`."""
        return f"{self.api_name} {self.version}"

    def is_served(self, versions: Versions) -> bool:
        return versions.get(self.api, -1) >= self.version


CAPABILITIES: dict[str, Capability] = {}
"""Name to capability, the oldest first."""


def _declare(
    api: int, version: int, api_name: str, since: str, name: str, about: str
) -> Capability:
    CAPABILITIES[name] = Capability(name, api, version, api_name, since, about)
    return CAPABILITIES[name]


RECORD_BATCHES = _declare(
    0, 3, "Produce", "0.11.0", "record batches", "message format 2, with record headers (KIP-98)"
)
IDEMPOTENCE = _declare(
    22, 0, "InitProducerId", "0.11.0", "idempotence", "idempotent producers (KIP-98)"
)
TRANSACTIONS = _declare(
    24, 0, "AddPartitionsToTxn", "0.11.0", "transactions", "transactions (KIP-98)"
)
LEADER_EPOCHS = _declare(
    23, 0, "OffsetForLeaderEpoch", "0.11.0", "leader epochs",
    "logs with leader epochs, by which followers truncate (KIP-101)",
)  # fmt: skip
RECORD_DELETION = _declare(
    21, 0, "DeleteRecords", "0.11.0", "deletion of records", "deletion before an offset (KIP-107)"
)
CONFIG_CHANGES = _declare(
    33, 0, "AlterConfigs", "0.11.0", "changes of settings", "settings by protocol (KIP-133)"
)
PARTITION_GROWTH = _declare(
    37, 0, "CreatePartitions", "1.0.0", "growth of topics", "more partitions by protocol (KIP-195)"
)
LOG_DIRECTORIES = _declare(
    34, 0, "AlterReplicaLogDirs", "1.0.0", "moves between log directories", "KIP-113"
)
FETCH_EPOCHS = _declare(
    1, 9, "Fetch", "2.1.0", "epochs in fetches", "fetches that carry the leader epoch (KIP-320)"
)
ZSTD = _declare(0, 7, "Produce", "2.1.0", "zstd", "compression by Zstandard (KIP-110)")
BROKER_EPOCHS = _declare(
    6, 5, "UpdateMetadata", "2.2.0", "broker epochs", "fencing of late control requests (KIP-380)"
)
END_AFTER_WATERMARK = _declare(
    2, 5, "ListOffsets", "2.2.0", "monotonic ends",
    "no end offset before a new leader knows its high watermark (KIP-207)",
)  # fmt: skip
STATIC_MEMBERS = _declare(
    11, 5, "JoinGroup", "2.3.0", "static members", "members with group.instance.id (KIP-345)"
)
CONFIG_INCREMENTS = _declare(
    44, 0, "IncrementalAlterConfigs", "2.3.0", "changes of single settings", "KIP-339"
)
REASSIGNMENT = _declare(
    45, 0, "AlterPartitionReassignments", "2.4.0", "reassignment by protocol", "KIP-455"
)
ELECTIONS = _declare(
    43, 1, "ElectLeaders", "2.4.0", "elections by protocol",
    "preferred and unclean elections (KIP-460)",
)  # fmt: skip
OFFSET_DELETION = _declare(
    47, 0, "OffsetDelete", "2.4.0", "deletion of committed offsets", "KIP-496"
)
GROUP_TRANSACTIONS = _declare(
    28, 3, "TxnOffsetCommit", "2.5.0", "fencing by group", "transactions with generations (KIP-447)"
)
QUOTAS = _declare(
    49, 0, "AlterClientQuotas", "2.6.0", "quotas by protocol", "client quotas (KIP-546)"
)
ISR_REQUESTS = _declare(
    56, 0, "AlterPartition", "2.7.0", "requests for ISR changes",
    "ISR changes through the controller, which are news at once (KIP-497)",
)  # fmt: skip
TOPIC_IDS = _declare(3, 10, "Metadata", "2.8.0", "topic ids", "topics with an id (KIP-516)")
LARGEST_TIMESTAMP = _declare(
    2, 7, "ListOffsets", "3.0.0", "offset of the largest timestamp", "KIP-734"
)
TRANSACTION_LISTS = _declare(66, 0, "ListTransactions", "3.0.0", "lists of transactions", "KIP-664")
CONSUMER_PROTOCOL = _declare(
    68, 1, "ConsumerGroupHeartbeat", "4.0.0", "the consumer protocol",
    "groups whose coordinator assigns partitions (KIP-848)",
)  # fmt: skip
"""Release 3.9 advertises version 0, and rejects it if the protocol is off, the default."""
SHARE_GROUPS = _declare(
    78, 2, "ShareFetch", "4.2.0", "share groups",
    "groups whose members share partitions and acknowledge records (KIP-932)",
)  # fmt: skip


def missing_capabilities(versions: Versions) -> list[str]:
    """The names of the capabilities that brokers with these versions lack."""
    return [
        capability.name
        for capability in CAPABILITIES.values()
        if not capability.is_served(versions)
    ]


def describe_missing(needs: Iterable[Capability], lacks: Iterable[str]) -> str:
    """The reason for which a cluster cannot satisfy these needs; empty if it can."""
    missing = [need for need in needs if need.name in {*lacks}]
    return f"the brokers lack {name_all(missing)}" if missing else ""


def name_all(capabilities: Iterable[Capability]) -> str:
    """The capabilities with their requests and releases, in a phrase."""
    return ", ".join(f"{one.name} ({one.request}, since {one.since})" for one in capabilities)
