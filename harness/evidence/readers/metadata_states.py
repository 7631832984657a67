"""Rows of `states` from KRaft's metadata log.

A row is one version of one fact, named by the path that the fact has in ZooKeeper, so that no
guarantee needs to know which plane kept it. The position is the record's offset (of a broker's
departure: of the first record in its batch), the version of a partition its partition epoch, that
of settings the offset. A broker is present while it is unfenced.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from urteil.harness.evidence.acts import DEFAULT_CLIENT, FEATURES, QUORUM_VOTERS
from urteil.harness.evidence.readers.metadata_image import TOPIC_RESOURCE, MetadataImage, Topic
from urteil.harness.evidence.readers.metadata_log import (
    FEATURE_LEVEL,
    LEADER_CHANGE,
    VOTERS,
    MetadataRecord,
)
from urteil.harness.evidence.readers.wall_clocks import WallClocks

Row = dict[str, Any]

_GONE = -1
_TOPICS = "/brokers/topics/"
_BROKERS = "/brokers/ids/"
_TOPIC_SETTINGS, _CLIENTS = "/config/topics/", "/config/clients/"


class MetadataStates:
    """Folds the records of one copy, in order of offset.

    `damage` has a sentence for each record about something that no record created; such a record
    makes no row.
    """

    def __init__(self, clocks: WallClocks) -> None:
        self.has_topic_ids = True
        self._clocks = clocks
        self._at_ns = 0
        self._image = MetadataImage()
        self._topic_versions: Counter[str] = Counter()
        self._present: set[int] = set()
        self._epoch = self._image.controller_epoch
        self.damage: list[str] = []

    def rows(self, records: Iterable[MetadataRecord]) -> Iterator[Row]:
        """The rows of all records. A batch is one change: first the departures of brokers, which
        cause the elections that the controller writes before them, then topics, then the rest."""
        for _, batch in groupby(records, key=lambda record: record.batch):
            topics: dict[str, Row] = {}
            rows: list[Row] = []
            first: Row = {}
            for record in batch:
                place = self._place(record)
                first = first or place
                try:
                    rows += [place | row for row in self._changes(record)]
                except KeyError:
                    self.damage.append(
                        f"the {record.name} at offset {record.offset} is about something that no "
                        "record before it created"
                    )
                    continue
                if _sets_replicas(record):
                    topics[record.fields["TopicId"]] = place
            departures = [row for row in rows if _is_departure(row)]
            yield from (row | first for row in departures)
            yield from (place | self._topic(topic_id) for topic_id, place in topics.items())
            yield from (row for row in rows if not _is_departure(row))

    @property
    def topic_ids(self) -> dict[str, str]:
        """The ids of topics by name. Valid once all records were read."""
        return {topic.name: topic_id for topic_id, topic in self._image.topics.items()}

    def is_stray(self, topic: str, topic_id: str | None, partition: int, broker: int) -> bool:
        """Whether a broker's log is no longer a replica, because the partition was moved while the
        broker could not be reached. Valid once all records were read."""
        known = self._image.topics.get(topic_id or "")
        if known is None or known.name != topic or partition not in known.partitions:
            return False
        return broker not in known.partitions[partition].replicas

    def _place(self, record: MetadataRecord) -> Row:
        begins_epoch = record.name == LEADER_CHANGE
        writer = record.fields["LeaderId"] if begins_epoch else self._image.controller
        self._at_ns = self._clocks.monotonic_ns(record.wall_ms, writer, after_ns=self._at_ns)
        return {
            "zxid": record.offset,
            "at_ns": self._at_ns,
            "wall_ms": record.wall_ms,
        }

    def _changes(self, record: MetadataRecord) -> list[Row]:
        removed = None
        if record.name == "RemoveTopicRecord":
            removed = self._image.topics[record.fields["TopicId"]]
        self._image.apply(record)
        if removed is not None:
            return list(_removed_topic(record.fields["TopicId"], removed))
        if record.name in ("PartitionRecord", "PartitionChangeRecord"):
            return [self._partition(record)]
        if record.name in ("ConfigRecord", "ClientQuotaRecord"):
            return list(self._settings(record))
        if record.name == FEATURE_LEVEL:
            levels = json.dumps(self._image.features)
            return [{"path": FEATURES, "version": record.offset, "settings": levels}]
        if record.name == VOTERS:
            voters = json.dumps({str(node): text for node, text in self._image.voters.items()})
            return [{"path": QUORUM_VOTERS, "version": record.offset, "settings": voters}]
        return [*self._brokers(), *self._controller()]

    def _topic(self, topic_id: str) -> Row:
        topic = self._image.topics[topic_id]
        replicas = {
            str(number): partition.replicas for number, partition in topic.partitions.items()
        }
        version = self._topic_versions[topic_id]
        self._topic_versions[topic_id] += 1
        return {
            "path": _TOPICS + topic.name,
            "version": version,
            "topic": topic.name,
            "topic_id": topic_id,
            "replicas": json.dumps(replicas),
        }

    def _partition(self, record: MetadataRecord) -> Row:
        topic_id, number = record.fields["TopicId"], record.fields["PartitionId"]
        topic, partition = self._image.topics[topic_id].name, self._image.partition(record.fields)
        return {
            "path": f"{_TOPICS}{topic}/partitions/{number}/state",
            "version": partition.version,
            "topic": topic,
            "topic_id": topic_id,
            "partition": number,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "controller_epoch": record.epoch,
            "isr": json.dumps(partition.isr),
            "elr": json.dumps(partition.elr),
            "replicas": json.dumps(partition.replicas),
        }

    def _settings(self, record: MetadataRecord) -> Iterator[Row]:
        """The settings of a topic or the quotas of a client id."""
        fields = record.fields
        values: Mapping[str, object]
        if record.name == "ClientQuotaRecord":
            entity = {part["EntityType"]: part["EntityName"] for part in fields["Entity"]}
            if entity.keys() != {"client-id"}:
                return
            client = entity["client-id"]
            path, values = (
                f"{_CLIENTS}{client or DEFAULT_CLIENT}",
                self._image.client_quotas[client],
            )
        elif fields["ResourceType"] == TOPIC_RESOURCE:
            name = fields["ResourceName"]
            path, values = _TOPIC_SETTINGS + name, self._image.configs[TOPIC_RESOURCE, name]
        else:
            return
        settings = {name: str(value) for name, value in values.items()}
        yield {"path": path, "version": record.offset, "settings": json.dumps(settings)}

    def _brokers(self) -> Iterator[Row]:
        """A row for each broker that appeared or disappeared."""
        present = self._image.present_brokers().keys()
        for broker in sorted(present ^ self._present):
            version = 0 if broker in present else _GONE
            yield {"path": f"{_BROKERS}{broker}", "version": version}
        self._present = set(present)

    def _controller(self) -> Iterator[Row]:
        epoch = self._image.controller_epoch
        if epoch != self._epoch:
            self._epoch = epoch
            yield {"path": "/controller", "version": 0, "controller": self._image.controller}
            yield {"path": "/controller_epoch", "version": epoch, "controller_epoch": epoch}


def _removed_topic(topic_id: str, topic: Topic) -> Iterator[Row]:
    common = {"version": _GONE, "topic": topic.name, "topic_id": topic_id}
    path = _TOPICS + topic.name
    for number in topic.partitions:
        yield common | {"path": f"{path}/partitions/{number}/state", "partition": number}
    yield common | {"path": path}
    yield {"version": _GONE, "path": _TOPIC_SETTINGS + topic.name}


def _is_departure(row: Row) -> bool:
    return bool(row["version"] == _GONE and row["path"].startswith(_BROKERS))


def _sets_replicas(record: MetadataRecord) -> bool:
    is_change = record.name == "PartitionChangeRecord"
    return record.name == "PartitionRecord" or (is_change and bool(record.fields["Replicas"]))
