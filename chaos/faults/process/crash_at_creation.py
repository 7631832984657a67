"""A broker is killed while it creates the replicas of a topic, before it has flushed their ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.fault import (
    ON_THIS_MACHINE,
    STARTED_BY_LAB,
    Fault,
    Proof,
    describe_stopped_nodes,
)
from urteil.chaos.log_directories import TOPIC_ID, partitions
from urteil.chaos.observations import NodeState
from urteil.chaos.waiting import until

CREATED_S, POLL_S = 10.0, 0.005


class CrashAtCreation(Fault):
    """Creates a topic of many partitions and stops the broker for moments, until one of its new
    folders has no topic id yet, then kills it.

    Brokers write the id into `partition.metadata` after they created the folder (Apache Kafka in
    another thread), so a crash between the two leaves a log that nothing names. A broker that
    writes both at once dies when it has all folders. Healing starts it and deletes the topic.
    """

    name = "crash_at_creation"
    about = "create a topic, and kill a broker that has created its folders and not written the ids"
    effects = frozenset({Effect.KILLS_NODES, Effect.DELETES_TOPICS})
    on_runtimes = ON_THIS_MACHINE
    on_targets = STARTED_BY_LAB
    proves = "the process id is gone; the number of the topic's folders, and of those without an id"
    sample = "follower"
    partitions: int = whole_number(200, "number of partitions of the topic", least=1, most=2000)

    topic = ""

    def begin(self, controls: Controls) -> Proof:
        (node,) = self.targets = tuple(node_selectors.select_running(controls, self.arguments)[:1])
        self.topic = f"new-{self.arguments.random().randrange(1 << 32):08x}"
        controls.admin.create_topic(
            self.topic,
            partitions=self.partitions,
            replication_factor=len(controls.brokers),
        )
        with controls.disks.open_log_directories(node) as log_dirs:
            try:
                self._stop_amid_creation(controls, node, log_dirs)
            finally:
                controls.kill(node)
            folders = self._folders(log_dirs)
            without = [folder.name for folder in folders if not (folder / TOPIC_ID).exists()]
        dead = controls.status(node).state is NodeState.DEAD
        shown = f" ({', '.join(without[:3])})" if without else ""
        return Proof(
            acted=dead and bool(folders),
            text=f"{node} was killed with {len(folders)} of {self.partitions} folders of "
            f"{self.topic}, {len(without)} of them without a topic id{shown}",
        )

    def _stop_amid_creation(self, controls: Controls, node: str, log_dirs: Sequence[Path]) -> None:
        """Return with the broker paused: with a folder without an id, or with all folders."""

        def is_amid() -> bool:
            controls.pause(node)
            folders = self._folders(log_dirs)
            if len(folders) == self.partitions or not all(
                (folder / TOPIC_ID).exists() for folder in folders
            ):
                return True
            controls.resume(node)
            return False

        until(is_amid, deadline_s=CREATED_S, poll_s=POLL_S)

    def _folders(self, log_dirs: Sequence[Path]) -> list[Path]:
        return [
            folder
            for log_dir in log_dirs
            for folder in partitions(log_dir)
            if folder.name.startswith(f"{self.topic}-")
        ]

    def heal(self, controls: Controls) -> str:
        started = [controls.start(node) for node in self.targets]
        texts = [f"{status.node} runs as pid {status.pid}" for status in started]
        if controls.admin.topic_id(self.topic):
            controls.admin.delete_topic(self.topic, wait=False)
            texts.append(f"{self.topic} is marked for deletion")
        return ", ".join(texts)

    def find_residual_effects(self, controls: Controls) -> str:
        until(lambda: controls.admin.topic_id(self.topic) is None, deadline_s=CREATED_S)
        remains = self.topic if controls.admin.topic_id(self.topic) else ""
        return ", ".join(filter(None, (remains, describe_stopped_nodes(controls, self.targets))))
