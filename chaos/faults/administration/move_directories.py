"""Replicas move between the log directories of their brokers under load."""

from __future__ import annotations

from urteil.chaos.admin_controls import Directories
from urteil.chaos.capabilities import LOG_DIRECTORIES
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import TopicFault
from urteil.chaos.node_selectors import NoTarget


class MoveDirectories(TopicFault):
    """AlterReplicaLogDirs (KIP-113) moves each replica to the next log directory of its broker;
    healing moves it back."""

    name = "move_directories"
    about = "move a topic's replicas to other log directories of their brokers, and back at healing"
    effects = frozenset({Effect.MOVES_LOGS})
    needs = (LOG_DIRECTORIES,)
    proves = "the log directories that brokers report before and after"
    _first: Directories | None = None

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, self.arguments.topic
        self.targets = (topic,)
        self.replicas(admin)
        places = admin.directories(topic)
        if any(len(all_directories) < 2 for all_directories, _ in places.values()):
            raise NoTarget("a broker has only one log directory: start the cluster with several")
        before = {partition: directory for partition, (_, directory) in places.items()}
        self._first = before
        target_directories = {
            partition: all_directories[
                (all_directories.index(directory) + 1) % len(all_directories)
            ]
            for partition, (all_directories, directory) in places.items()
        }
        admin.move_logs(topic, target_directories)
        now = {
            partition: directory for partition, (_, directory) in admin.directories(topic).items()
        }
        return Proof(
            acted=now == target_directories,
            text=f"{_list_directories(topic, before)}; then {_list_directories(topic, now)}",
        )

    def heal(self, controls: Controls) -> str:
        if self._first is None:
            return "no replica was moved"
        controls.admin.move_logs(self.arguments.topic, self._first)
        return "all replicas are back"


def _list_directories(topic: str, places: Directories) -> str:
    shown = (
        f"{topic}-{partition} of {node} in {path.rpartition('/')[2]}"
        for (node, partition), path in sorted(places.items())
    )
    return ", ".join(shown)
