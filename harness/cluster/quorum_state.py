"""The cluster's state in KRaft's metadata log, read from the controllers' disks.

A record counts once it is committed (`metadata_copies`). What is committed never changes: records
are folded once, in order.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

from kazoo.client import KazooClient

from urteil.chaos.observations import LabFailure, PartitionView
from urteil.chaos.topology import node_id, node_name
from urteil.chaos.waiting import until
from urteil.harness.cluster.quorum_watch import QuorumWatch
from urteil.harness.evidence.journal import METADATA_COMMITTED, QUORUM_STATES
from urteil.harness.evidence.readers.metadata_batches import batch_row
from urteil.harness.evidence.readers.metadata_copies import BatchPlace, MetadataCopy, find_committed
from urteil.harness.evidence.readers.metadata_image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
    Partition,
    Topic,
)
from urteil.harness.evidence.readers.metadata_log import (
    MetadataLog,
    RecordSchemas,
    parse_records,
    release_schemas,
)
from urteil.harness.evidence.readers.quorum_votes import QUORUM_STATE
from urteil.harness.evidence.readers.stored_batches import StoredBatch, parse_batches

POLL_S = 0.05


class QuorumState:
    """Implements `ClusterState`. `folders` are the controllers' `__cluster_metadata-0`, which need
    not be known before the nodes have started."""

    def __init__(
        self,
        folders: Callable[[], Sequence[Path]],
        schemas: Callable[[], RecordSchemas],
        committed: Path | None = None,
        watch: QuorumWatch | None = None,
    ) -> None:
        """For evidence: `committed` is the file to which committed batches are appended, and
        `watch` records votes from `start` to `close`."""
        self._committed = committed
        self._watch = watch
        self.lacks: frozenset[str] = frozenset()
        self._folders = folders
        self._schemas = schemas
        self._image = MetadataImage()
        self._end = 0
        self._lock = threading.Lock()

    @cached_property
    def _copies(self) -> list[MetadataCopy]:
        return [MetadataCopy(folder, self._schemas) for folder in self._folders()]

    @cached_property
    def _log(self) -> MetadataLog:
        return MetadataLog(self._copies[0].folder)

    @property
    def client(self) -> KazooClient:
        raise LabFailure("this cluster has no ZooKeeper: its metadata is KRaft's")

    def start(self, *, deadline_s: float) -> None:
        """Await the first controller; LabFailure on the deadline."""
        if self._watch is not None:
            self._watch.start()
        if not until(self.controller, bool, deadline_s=deadline_s, poll_s=POLL_S):
            raise LabFailure(f"the quorum has no leader within {deadline_s:g} s")

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def registered_brokers(self) -> dict[str, int | None]:
        present = self._read().present_brokers()
        return {f"b{number}": present[number].epoch for number in sorted(present)}

    def controller(self) -> str | None:
        controller = self._read().controller
        return None if controller < 0 else node_name(controller)

    def controller_epoch(self) -> int:
        return max(0, self._read().controller_epoch)

    def voters(self) -> dict[str, str]:
        return {node_name(number): text for number, text in sorted(self._read().voters.items())}

    def registrations(self) -> dict[str, dict[str, Any]]:
        _not_in_kraft("registrations in ZooKeeper's form")

    def cluster_id(self) -> str:
        _not_in_kraft("the cluster's id")

    def topics(self) -> list[str]:
        return sorted(topic.name for topic in self._read().topics.values())

    def topic_id(self, topic: str) -> str | None:
        known_topic = self._topic(topic)
        return None if known_topic is None else known_topic[0]

    def partitions(self, topic: str) -> list[PartitionView]:
        known_topic = self._topic(topic)
        if known_topic is None:
            return []
        partitions = known_topic[1].partitions
        return [_view(topic, number, partitions[number]) for number in sorted(partitions)]

    def topic_config(self, topic: str) -> dict[str, str]:
        return dict(self._read().configs.get((TOPIC_RESOURCE, topic), {}))

    def broker_defaults(self) -> dict[str, str]:
        return dict(self._read().configs.get((BROKER_RESOURCE, ""), {}))

    def client_quotas(self, client: str | None) -> dict[str, str]:
        quotas = self._read().client_quotas.get(client, {})
        return {name: f"{value:g}" for name, value in quotas.items()}

    def is_reassigning(self, topic: str) -> bool:
        known_topic = self._topic(topic)
        partitions = known_topic[1].partitions.values() if known_topic else ()
        return any(partition.adding or partition.removing for partition in partitions)

    def is_being_deleted(self, topic: str) -> bool:
        """Always false: KRaft deletes a topic at once."""
        return False

    def is_deleted(self, topic: str) -> bool:
        return self._topic(topic) is None

    def _topic(self, name: str) -> tuple[str, Topic] | None:
        topics = self._read().topics
        return next(((key, topic) for key, topic in topics.items() if topic.name == name), None)

    def _read(self) -> MetadataImage:
        """The image of all records that are committed now."""
        with self._lock:
            for copy in self._copies:
                copy.read_new()
            self._fold(*find_committed(self._copies))
            return self._image

    def _fold(self, copy: MetadataCopy, committed: int) -> None:
        new = [batch for batch in copy.batches if self._end < batch.end <= committed]
        lines = []
        for batch in _read(new):
            if isinstance(batch, str) or batch.error is not None:
                raise LabFailure(f"the metadata log {copy.folder} cannot be read: {batch}")
            for record in parse_records(batch, self._schemas(), self._log):
                self._image.apply(record)
            lines.append(json.dumps(batch_row(batch, self._schemas())) + "\n")
            self._end = batch.last + 1
        if lines and self._committed is not None:
            with self._committed.open("a") as file:
                file.writelines(lines)


def quorum_state(
    logs: Callable[[], Mapping[str, Path]], version: str, run_dir: Path | None = None
) -> QuorumState:
    """The state of a cluster of this release. `logs` finds the controllers' metadata logs, which is
    done once, when they have started. With `run_dir` it leaves evidence of a run there."""
    schemas = cache(partial(release_schemas, version))
    folders = cache(logs)
    if run_dir is None:
        return QuorumState(lambda: list(folders().values()), schemas)
    watch = QuorumWatch(
        lambda: {node_id(node): folder / QUORUM_STATE for node, folder in folders().items()},
        run_dir / QUORUM_STATES,
    )
    return QuorumState(
        lambda: list(folders().values()), schemas, run_dir / METADATA_COMMITTED, watch
    )


def _read(places: Sequence[BatchPlace]) -> Iterator[StoredBatch | str]:
    """The batches at these consecutive places, or the reason for which one cannot be read."""
    for path, group in groupby(places, key=lambda place: place.file):
        inside = list(group)
        with path.open("rb") as file:
            file.seek(inside[0].at)
            data = file.read(sum(place.size for place in inside))
        yield from parse_batches(data)


def _view(topic: str, number: int, partition: Partition) -> PartitionView:
    return PartitionView(
        topic=topic,
        partition=number,
        leader=f"b{partition.leader}" if partition.leader >= 0 else None,
        leader_epoch=partition.leader_epoch,
        isr=tuple(f"b{replica}" for replica in partition.isr),
        replicas=tuple(f"b{replica}" for replica in partition.replicas),
    )


def _not_in_kraft(what: str) -> NoReturn:
    raise LabFailure(f"a cluster with KRaft has not {what}")
