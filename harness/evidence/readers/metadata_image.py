"""The cluster as KRaft's metadata records describe it, record by record.

Each PartitionChangeRecord raises the partition epoch, and the leader epoch iff it names a leader
(`PartitionRegistration`). Releases before KIP-966 have no eligible leader replicas. A broker's
registration is identified by its epoch, and a broker is present while it is unfenced. A
LeaderChangeMessage names the active controller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from urteil.harness.evidence.readers.metadata_log import (
    FEATURE_LEVEL,
    LEADER_CHANGE,
    MetadataRecord,
    voters_of,
)

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Types of resources in ConfigRecord (`ConfigResource.Type`)."""
_SAME_LEADER = -2
_FENCED = 1


@dataclass(slots=True, kw_only=True)
class Partition:
    """`version` is the partition epoch. `leader` -1 is none."""

    leader: int
    leader_epoch: int
    version: int
    isr: list[int]
    elr: list[int]
    replicas: list[int]
    adding: list[int]
    removing: list[int]


@dataclass(slots=True)
class Topic:
    name: str
    partitions: dict[int, Partition] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Broker:
    """One registration; `epoch` is its own. `endpoints` are as in the record."""

    epoch: int
    fenced: bool
    rack: str | None
    endpoints: list[dict[str, Any]]


class MetadataImage:
    """Topics by id, brokers by id, settings by resource type and name, quotas by client id (None is
    the default), levels of features by name, the active controller and its epoch (-1 before the
    first), and the directory ids of a dynamic quorum's voters by node id (none of a static one)."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.brokers: dict[int, Broker] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.client_quotas: dict[str | None, dict[str, float]] = {}
        self.features: dict[str, int] = {}
        self.controller = -1
        self.controller_epoch = -1
        self.voters: dict[int, str] = {}

    def apply(self, record: MetadataRecord) -> None:
        """Apply a record. Raises KeyError for a change of an object that no record created."""
        fields = record.fields
        self.voters = voters_of(record) or self.voters
        match record.name:
            case "TopicRecord":
                self.topics[fields["TopicId"]] = Topic(fields["Name"])
            case "RemoveTopicRecord":
                removed = self.topics.pop(fields["TopicId"])
                self.configs.pop((TOPIC_RESOURCE, removed.name), None)
            case "PartitionRecord":
                self._create_partition(fields)
            case "PartitionChangeRecord":
                self._change_partition(fields)
            case "RegisterBrokerRecord":
                self._register_broker(fields)
            case "BrokerRegistrationChangeRecord" if fields["Fenced"]:
                self.brokers[fields["BrokerId"]].fenced = fields["Fenced"] == _FENCED
            case "FenceBrokerRecord" | "UnfenceBrokerRecord":
                self.brokers[fields["Id"]].fenced = record.name == "FenceBrokerRecord"
            case "UnregisterBrokerRecord":
                self.brokers.pop(fields["BrokerId"], None)
            case "ConfigRecord":
                resource = (fields["ResourceType"], fields["ResourceName"])
                _put(self.configs.setdefault(resource, {}), fields["Name"], fields["Value"])
            case "ClientQuotaRecord":
                self._set_quota(fields)
            case name if name == FEATURE_LEVEL:
                _put(self.features, fields["Name"], fields["FeatureLevel"] or None)
            case name if name == LEADER_CHANGE:
                self.controller, self.controller_epoch = fields["LeaderId"], record.epoch

    def present_brokers(self) -> dict[int, Broker]:
        """The brokers that are not fenced."""
        return {number: broker for number, broker in self.brokers.items() if not broker.fenced}

    def partition(self, fields: dict[str, Any]) -> Partition:
        """The partition that a record is about."""
        return self.topics[fields["TopicId"]].partitions[fields["PartitionId"]]

    def _create_partition(self, fields: dict[str, Any]) -> None:
        self.topics[fields["TopicId"]].partitions[fields["PartitionId"]] = Partition(
            leader=fields["Leader"],
            leader_epoch=fields["LeaderEpoch"],
            version=fields["PartitionEpoch"],
            isr=fields["Isr"],
            elr=fields.get("EligibleLeaderReplicas") or [],
            replicas=fields["Replicas"],
            adding=fields["AddingReplicas"],
            removing=fields["RemovingReplicas"],
        )

    def _change_partition(self, fields: dict[str, Any]) -> None:
        partition = self.partition(fields)
        partition.version += 1
        if fields["Leader"] != _SAME_LEADER:
            partition.leader = fields["Leader"]
            partition.leader_epoch += 1
        for name, attribute in _REPLICA_LISTS.items():
            if fields.get(name) is not None:
                setattr(partition, attribute, fields[name])

    def _register_broker(self, fields: dict[str, Any]) -> None:
        self.brokers[fields["BrokerId"]] = Broker(
            epoch=fields["BrokerEpoch"],
            fenced=fields["Fenced"],
            rack=fields["Rack"],
            endpoints=fields["EndPoints"],
        )

    def _set_quota(self, fields: dict[str, Any]) -> None:
        entity = {field["EntityType"]: field["EntityName"] for field in fields["Entity"]}
        if entity.keys() == {"client-id"}:
            quotas = self.client_quotas.setdefault(entity["client-id"], {})
            _put(quotas, fields["Key"], None if fields["Remove"] else fields["Value"])


_REPLICA_LISTS = {
    "Isr": "isr",
    "EligibleLeaderReplicas": "elr",
    "Replicas": "replicas",
    "AddingReplicas": "adding",
    "RemovingReplicas": "removing",
}


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    """Set a value; None removes it."""
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
