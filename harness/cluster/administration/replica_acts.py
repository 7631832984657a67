"""Acts on replicas and leaders: reassignments, moves between log directories, elections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import not_
from typing import Any

from kafka.structs import TopicPartition

from urteil.chaos.admin_controls import ActFailed, Directories, Replicas
from urteil.chaos.capabilities import ELECTIONS, REASSIGNMENT
from urteil.chaos.topology import node_id
from urteil.chaos.waiting import until
from urteil.harness.cluster.administration import admin_znodes
from urteil.harness.cluster.administration.admin_requests import (
    DEADLINE_S,
    POLL_S,
    AdminRequests,
)

ELECTION_S = 5.0
PREFERRED, UNCLEAN = 0, 1


class ReplicaActs(AdminRequests):
    """Replicas are moved, and leaders elected."""

    def reassign(self, topic: str, new_replicas: Replicas) -> None:
        replicas = {
            TopicPartition(topic, partition): [node_id(node) for node in nodes]
            for partition, nodes in new_replicas.items()
        }
        with self._acts.act("reassign", topic, _plain(self.replicas(topic))) as after:
            after.update(_plain(new_replicas))
            if self._lacks(REASSIGNMENT):
                self._reassign_by_znode(replicas)
            else:
                self._request(
                    lambda admin: _raise_first(admin.alter_partition_reassignments(replicas))
                )

    def _reassign_by_znode(self, replicas: Mapping[TopicPartition, Sequence[int]]) -> None:
        order = {tuple(slot): nodes for slot, nodes in replicas.items()}
        if not until(
            lambda: admin_znodes.request_reassignment(self._state.client, order),
            deadline_s=DEADLINE_S,
            poll_s=POLL_S,
        ):
            raise ActFailed(f"another reassignment goes on after {DEADLINE_S:g} s")

    def cancel_moves(self, topic: str, origin: Replicas) -> list[int]:
        moves = {TopicPartition(topic, partition): None for partition in origin}
        with self._acts.act("cancel moves", topic, _plain(self.replicas(topic))) as after:
            answers = self._request(lambda admin: admin.alter_partition_reassignments(moves))
            cancelled = sorted(slot.partition for slot, error in answers.items() if error is None)
            after.update(
                {
                    str(partition): origin[partition] if partition in cancelled else None
                    for partition in origin
                }
            )
        return cancelled

    def await_reassigned(self, topic: str, replicas: Replicas, *, deadline_s: float) -> None:
        if problem := until(
            lambda: self._describe_misplaced(topic, replicas),
            not_,
            deadline_s=deadline_s,
            poll_s=POLL_S,
        ):
            raise ActFailed(f"{problem} after {deadline_s:g} s")

    def _describe_misplaced(self, topic: str, replicas: Replicas) -> str:
        """A partition whose replicas are not the requested ones, all in sync; empty if there is
        none."""
        if self._state.is_reassigning(topic):
            return f"{topic} is still being reassigned"
        for view in self._state.partitions(topic):
            nodes = replicas.get(view.partition)
            if nodes is not None and view.replicas != tuple(nodes):
                return f"{topic}-{view.partition} is on {', '.join(view.replicas)}"
            if nodes is not None and set(view.isr) != set(nodes):
                return f"{topic}-{view.partition} has only {', '.join(view.isr)} in sync"
        return ""

    def directories(self, topic: str) -> dict[tuple[str, int], tuple[list[str], str]]:
        nodes = sorted({node_id(node) for nodes in self.replicas(topic).values() for node in nodes})
        answers = self._request(lambda admin: admin.describe_log_dirs([topic], brokers=nodes))
        directories: dict[tuple[str, int], tuple[list[str], str]] = {}
        for broker in answers:
            paths = sorted(log_dir["log_dir"] for log_dir in broker["log_dirs"])
            for log_dir in broker["log_dirs"]:
                for part in (part for entry in log_dir["topics"] for part in entry["partitions"]):
                    if not part["is_future_key"]:
                        where = f"b{broker['broker']}", part["partition_index"]
                        directories[where] = paths, log_dir["log_dir"]
        return directories

    def move_logs(self, topic: str, directories: Directories) -> None:
        paths = {
            (topic, partition, node_id(node)): path
            for (node, partition), path in directories.items()
        }

        def are_moved() -> bool:
            places = self.directories(topic)
            return all(
                where in places and places[where][1] == directories[where] for where in directories
            )

        with self._acts.act("move logs", topic) as after:
            after.update(
                {f"{node}/{partition}": path for (node, partition), path in directories.items()}
            )
            self._send_until(lambda admin: admin.alter_replica_log_dirs(paths), are_moved)

    def elect(self, topic: str, partitions: Sequence[int], *, unclean: bool) -> dict[int, str]:
        kind = "unclean" if unclean else "preferred"
        answers: dict[int, str] = {}
        before = self.replicas(topic)
        suffix = f"-{partitions[0]}" if len(partitions) == 1 else ""
        with self._acts.act(f"elect {kind}", f"{topic}{suffix}", self._leaders(topic)) as after:
            slots = {topic: list(partitions)}
            election = UNCLEAN if unclean else PREFERRED
            if self._lacks(ELECTIONS):
                answers = self._elect_by_znode(topic, partitions)
            else:
                answer = self._request(
                    lambda admin: admin.elect_leaders(election, slots, raise_errors=False)
                )
                for result in answer.replica_election_results:
                    for partition_result in result.partition_result:
                        failure = (
                            partition_result.error_message or f"error {partition_result.error_code}"
                        )
                        answers[partition_result.partition_id] = (
                            failure if partition_result.error_code else ""
                        )
            after.update(self._leaders(topic), partitions=sorted(partitions))
            if not unclean:
                now = self.replicas(topic)
                unmoved = [replica for replica in now if before.get(replica) == now[replica]]
                after["elected"] = {
                    str(replica): now[replica][0]
                    for replica in unmoved
                    if answers.get(replica) == ""
                }
        return answers

    def _elect_by_znode(self, topic: str, partitions: Sequence[int]) -> dict[int, str]:
        """An election by znode has no answer: a partition whose first replica leads soon was
        elected."""
        admin_znodes.request_election(
            self._state.client, [(topic, partition) for partition in partitions]
        )

        def find_others() -> set[int]:
            views = [view for view in self._state.partitions(topic) if view.replicas]
            others = {view.partition for view in views if view.leader != view.replicas[0]}
            return others & set(partitions)

        others = until(find_others, not_, deadline_s=ELECTION_S, poll_s=POLL_S)
        return {partition: "not elected" if partition in others else "" for partition in partitions}

    def _leaders(self, topic: str) -> dict[str, Any]:
        return {"leaders": {str(v.partition): v.leader for v in self._state.partitions(topic)}}


def _raise_first(errors: Mapping[Any, Any]) -> None:
    for slot, error in errors.items():
        if error is not None:
            raise error(f"{slot.topic}-{slot.partition}")


def _plain(replicas: Replicas) -> dict[str, Any]:
    return {str(partition): list(nodes) for partition, nodes in sorted(replicas.items())}
