"""Rows of `states` from KRaft's metadata log.

A row is one version of one fact, named by the path that the fact has in ZooKeeper, so that no
guarantee needs to know which plane kept it. The position is the record's offset, the version of a
partition its partition epoch. A broker is present while it is unfenced. Each PartitionChangeRecord
raises the partition epoch, and the leader epoch iff it names a leader (`PartitionRegistration`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from urteil.harness.evidence.readers.metadata_log import LEADER_CHANGE, MetadataRecord

Row = dict[str, Any]

_GONE = -1
_SAME_LEADER = -2
_FENCED, _UNFENCED = 1, -1


@dataclass(slots=True)
class _Partition:
    leader: int
    leader_epoch: int
    version: int
    isr: list[int]
    replicas: list[int]


@dataclass(slots=True)
class _Topic:
    name: str
    version: int = 0
    partitions: dict[int, _Partition] = field(default_factory=dict)


class MetadataStates:
    """Folds the records of one copy, in order of offset.

    `damage` has a sentence for each record about a topic or partition that no record created; such
    a record makes no row.
    """

    def __init__(self, wall_minus_monotonic_ns: int) -> None:
        self._offset_ns = wall_minus_monotonic_ns
        self._topics: dict[str, _Topic] = {}
        self._present: set[int] = set()
        self._epoch = _GONE
        self.damage: list[str] = []

    def rows(self, records: Iterable[MetadataRecord]) -> Iterator[Row]:
        """The rows of all records. A batch is one change; the rows of its topics come first."""
        for _, batch in groupby(records, key=lambda record: record.batch):
            topics: dict[str, Row] = {}
            rows: list[Row] = []
            for record in batch:
                place = self._place(record)
                try:
                    rows += [place | row for row in self._changes(record)]
                except KeyError:
                    self.damage.append(
                        f"the {record.name} at offset {record.offset} is about a topic or "
                        "partition that no record before it created"
                    )
                    continue
                if _sets_replicas(record):
                    topics[record.fields["TopicId"]] = place
            yield from (self._topic_row(place, topic_id) for topic_id, place in topics.items())
            yield from rows

    def is_stray(self, topic: str, topic_id: str | None, partition: int, broker: int) -> bool:
        """Whether a broker's log is no longer a replica, because the partition was moved while the
        broker could not be reached. Valid once all records were read."""
        known = self._topics.get(topic_id or "")
        if known is None or known.name != topic or partition not in known.partitions:
            return False
        return broker not in known.partitions[partition].replicas

    def _place(self, record: MetadataRecord) -> Row:
        return {
            "zxid": record.offset,
            "at_ns": record.wall_ms * 1_000_000 - self._offset_ns,
            "wall_ms": record.wall_ms,
        }

    def _changes(self, record: MetadataRecord) -> Iterator[Row]:
        fields = record.fields
        match record.name:
            case "TopicRecord":
                self._topics[fields["TopicId"]] = _Topic(fields["Name"])
            case "PartitionRecord":
                yield self._partition(record, self._new_partition(fields))
            case "PartitionChangeRecord":
                yield self._partition(record, self._changed_partition(fields))
            case "RemoveTopicRecord":
                yield from self._removed_topic(fields["TopicId"])
            case "RegisterBrokerRecord":
                yield from self._broker(
                    fields["BrokerId"], _FENCED if fields["Fenced"] else _UNFENCED
                )
            case "BrokerRegistrationChangeRecord":
                yield from self._broker(fields["BrokerId"], fields["Fenced"])
            case "FenceBrokerRecord":
                yield from self._broker(fields["Id"], _FENCED)
            case "UnfenceBrokerRecord":
                yield from self._broker(fields["Id"], _UNFENCED)
            case "UnregisterBrokerRecord":
                yield from self._broker(fields["BrokerId"], _FENCED)
            case name if name == LEADER_CHANGE:
                yield from self._controller(fields["LeaderId"], record.epoch)

    def _new_partition(self, fields: Row) -> _Partition:
        partition = _Partition(
            leader=fields["Leader"],
            leader_epoch=fields["LeaderEpoch"],
            version=fields["PartitionEpoch"],
            isr=fields["Isr"],
            replicas=fields["Replicas"],
        )
        self._topics[fields["TopicId"]].partitions[fields["PartitionId"]] = partition
        return partition

    def _changed_partition(self, fields: Row) -> _Partition:
        partition = self._topics[fields["TopicId"]].partitions[fields["PartitionId"]]
        partition.version += 1
        if fields["Leader"] != _SAME_LEADER:
            partition.leader = fields["Leader"]
            partition.leader_epoch += 1
        if fields["Isr"] is not None:
            partition.isr = fields["Isr"]
        if fields["Replicas"] is not None:
            partition.replicas = fields["Replicas"]
        return partition

    def _topic_row(self, place: Row, topic_id: str) -> Row:
        topic = self._topics[topic_id]
        replicas = {str(number): one.replicas for number, one in topic.partitions.items()}
        row = {
            "path": f"/brokers/topics/{topic.name}",
            "version": topic.version,
            "topic": topic.name,
            "topic_id": topic_id,
            "replicas": json.dumps(replicas),
        }
        topic.version += 1
        return place | row

    def _partition(self, record: MetadataRecord, partition: _Partition) -> Row:
        topic_id, number = record.fields["TopicId"], record.fields["PartitionId"]
        topic = self._topics[topic_id].name
        return {
            "path": f"/brokers/topics/{topic}/partitions/{number}/state",
            "version": partition.version,
            "topic": topic,
            "topic_id": topic_id,
            "partition": number,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "controller_epoch": record.epoch,
            "isr": json.dumps(partition.isr),
            "replicas": json.dumps(partition.replicas),
        }

    def _removed_topic(self, topic_id: str) -> Iterator[Row]:
        topic = self._topics.pop(topic_id)
        path = f"/brokers/topics/{topic.name}"
        common = {"version": _GONE, "topic": topic.name, "topic_id": topic_id}
        for number in topic.partitions:
            yield common | {"path": f"{path}/partitions/{number}/state", "partition": number}
        yield common | {"path": path}

    def _broker(self, broker: int, fencing: int) -> Iterator[Row]:
        if fencing == _UNFENCED and broker not in self._present:
            self._present.add(broker)
            yield {"path": f"/brokers/ids/{broker}", "version": 0}
        elif fencing == _FENCED and broker in self._present:
            self._present.discard(broker)
            yield {"path": f"/brokers/ids/{broker}", "version": _GONE}

    def _controller(self, controller: int, epoch: int) -> Iterator[Row]:
        if epoch != self._epoch:
            self._epoch = epoch
            yield {"path": "/controller", "version": 0, "controller": controller}
            yield {"path": "/controller_epoch", "version": epoch, "controller_epoch": epoch}


def _sets_replicas(record: MetadataRecord) -> bool:
    is_change = record.name == "PartitionChangeRecord"
    return record.name == "PartitionRecord" or (is_change and record.fields["Replicas"] is not None)
