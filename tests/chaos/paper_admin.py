"""The administration of a paper cluster: topics are dictionaries, operations end at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from urteil.chaos.admin_controls import Directories, Replicas
from urteil.chaos.observations import PartitionView

if TYPE_CHECKING:
    from tests.chaos.paper import PaperCluster


class PaperAdmin:
    """With the cluster's `without_effect`, operations do nothing and succeed."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster
        self.ids = {"t": "id-0"}
        self.settings: dict[str, dict[str, str]] = {}
        self.limits: dict[str | None, dict[str, str]] = {}
        self.broker_settings: dict[str, str] = {}
        self.records: dict[str, int] = {}
        self.starts: dict[int, int] = {}
        self.going: set[str] = set()
        self.places: dict[tuple[str, int], str] = {}
        self.open_ends: list[str] = []
        self.releases = dict.fromkeys(cluster.nodes, "old")
        self.levels = {"metadata.version": 21}
        self.epoch = 1

    @property
    def without_effect(self) -> bool:
        return self.cluster.without_effect

    def topic_id(self, topic: str) -> str | None:
        self._finish()
        return self.ids.get(topic)

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str] | None = None,
    ) -> str:
        if self.without_effect:
            return ""
        self._finish()
        assert topic not in self.ids
        self.ids[topic] = f"id-{len(self.ids)}-{self.epoch}"
        self.epoch += 1
        self.records[topic] = 0
        nodes = self.cluster.brokers[:replication_factor]
        self.cluster.views[topic] = {
            partition: _view(topic, partition, nodes) for partition in range(partitions)
        }
        return self.ids[topic]

    def delete_topic(self, topic: str, *, wait: bool = True) -> None:
        self.going.add(topic)
        self._finish()

    def _finish(self) -> None:
        """Deletions wait for all replicas, except in KRaft."""
        all_present = set(self.cluster.registered_brokers()) == set(self.cluster.brokers)
        if (all_present or self.cluster.voters) and not self.without_effect:
            for topic in self.going:
                self.ids.pop(topic, None)
                self.cluster.views.pop(topic, None)
            self.going.clear()

    def fill(self, topic: str, records: int) -> int:
        self.records[topic] = self.records.get(topic, 0) + records
        return records

    def record_count(self, topic: str) -> int:
        return self.records.get(topic, 0)

    def offsets(self, topic: str) -> dict[int, tuple[int, int]]:
        return {replica: (self.starts.get(replica, 0), 100) for replica in self.replicas(topic)}

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        if not self.without_effect:
            self.starts |= before
        return dict(before)

    def add_partitions(self, topic: str, total: int) -> None:
        if self.without_effect:
            return
        views = self.cluster.views[topic]
        for partition in range(len(views), total):
            views[partition] = _view(topic, partition, self.cluster.brokers)

    def replicas(self, topic: str) -> dict[int, tuple[str, ...]]:
        return {view.partition: view.replicas for view in self.cluster.partitions(topic)}

    def reassign(self, topic: str, replicas: Replicas) -> None:
        if self.without_effect:
            return
        for partition, nodes in replicas.items():
            view, to = self.cluster.views[topic][partition], tuple(nodes)
            leader = view.leader if view.leader in to else to[0]
            self.cluster.views[topic][partition] = replace(view, replicas=to, isr=to, leader=leader)

    def cancel_moves(self, topic: str, origin: Replicas) -> list[int]:
        self.reassign(topic, origin)
        return sorted(origin)

    def await_reassigned(self, topic: str, replicas: Replicas, *, deadline_s: float) -> None:
        pass

    def directories(self, topic: str) -> dict[tuple[str, int], tuple[list[str], str]]:
        held = [
            (node, partition) for partition, nodes in self.replicas(topic).items() for node in nodes
        ]
        return {
            place: (["/data/1", "/data/2"], self.places.get(place, "/data/1")) for place in held
        }

    def move_logs(self, topic: str, directories: Directories) -> None:
        if not self.without_effect:
            self.places |= directories

    def elect(self, topic: str, partitions: Sequence[int], *, unclean: bool) -> dict[int, str]:
        if self.without_effect:
            return dict.fromkeys(partitions, "refused")
        for partition in partitions:
            view = self.cluster.views[topic][partition]
            alive = [node for node in view.replicas if node not in view.isr or not unclean]
            self.cluster.views[topic][partition] = replace(view, leader=alive[0])
        return dict.fromkeys(partitions, "")

    def config(self, topic: str) -> dict[str, str]:
        return dict(self.settings.get(topic, {}))

    def request_config(self, topic: str, settings: Mapping[str, str], *, wait_s: float) -> bool:
        return self.without_effect

    def set_config(self, topic: str, settings: Mapping[str, str | None]) -> None:
        if self.without_effect:
            return
        merged = {**self.config(topic), **settings}
        self.settings[topic] = {k: v for k, v in merged.items() if v is not None}

    def defaults(self) -> dict[str, str]:
        return dict(self.broker_settings)

    def set_defaults(self, settings: Mapping[str, str | None]) -> None:
        if self.without_effect:
            return
        merged = {**self.broker_settings, **settings}
        self.broker_settings = {k: v for k, v in merged.items() if v is not None}

    def quotas(self, client: str | None) -> dict[str, str]:
        return dict(self.limits.get(client, {}))

    def set_quotas(self, client: str | None, quotas: Mapping[str, float | None]) -> None:
        if self.without_effect:
            return
        merged = {**self.quotas(client), **quotas}
        self.limits[client] = {k: f"{v}" for k, v in merged.items() if v is not None}

    def decided_transactions(self) -> list[str]:
        return self.open_ends

    def release(self, node: str) -> str:
        return self.releases[node]

    def upgrade(self, node: str, *, step: int) -> str:
        if not self.without_effect:
            self.releases[node] = f"new, step {step}"
        return self.releases[node]

    def features(self) -> dict[str, int]:
        return dict(self.levels)

    def raise_features(self) -> dict[str, int]:
        self.cluster.acts.append("raise features")
        if not self.without_effect:
            self.levels = {"group.version": 1, "metadata.version": 25}
        return self.features()


def _view(topic: str, partition: int, nodes: Sequence[str]) -> PartitionView:
    return PartitionView(
        topic=topic,
        partition=partition,
        leader=nodes[0],
        leader_epoch=0,
        isr=tuple(nodes),
        replicas=tuple(nodes),
    )
