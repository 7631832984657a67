"""Make topics and delete them again, beside the load."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.fault import Proof, until
from urteil.chaos.faults.topic_fault import TopicFault

COUNT = 4
PARTITIONS = 3
GONE_S = 30.0


class TopicChurn(TopicFault):
    """Topics of its own; half of them go at once, the others at healing."""

    name = "topic_churn"
    about = "create topics and delete them again while others are in use"
    selectors = "anything: the topics are its own"
    proves = "the ids that ZooKeeper gave the topics, and that those deleted are gone"
    options: ClassVar[dict[str, str]] = {"count": f"topics to create (default {COUNT})"}

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.count = int(arguments.number("count", COUNT, least=1, most=1000))

    def begin(self, controls: Controls) -> Proof:
        admin, mark = controls.admin, f"{self.arguments.random().randrange(1 << 32):08x}"
        names = [f"churn-{mark}-{n}" for n in range(self.count)]
        self.targets = tuple(names)
        factor = min(3, len(controls.brokers))
        ids = [
            admin.create_topic(name, partitions=PARTITIONS, replication_factor=factor)
            for name in names
        ]
        gone = names[::2]
        for name in gone:
            admin.delete_topic(name)
        left = [name for name in gone if admin.topic_id(name)]
        acted = bool(names) and len(set(ids)) == len(names) and all(ids) and not left
        return Proof(
            acted=acted,
            text=f"{len(names)} topics of {PARTITIONS} partitions made (ids {', '.join(ids)}), "
            f"{len(gone)} of them deleted and gone",
        )

    def heal(self, controls: Controls) -> str:
        """The others are wished away, no more: the deletion waits for every replica, and the
        healing of a crash may come after this one."""
        here = [name for name in self.targets if controls.admin.topic_id(name)]
        for name in here:
            controls.admin.delete_topic(name, wait=False)
        return f"{len(here)} more to be deleted"

    def find_residual_effects(self, controls: Controls) -> str:
        until(lambda: not self._left(controls), deadline_s=GONE_S)
        return ", ".join(self._left(controls))

    def _left(self, controls: Controls) -> list[str]:
        return [name for name in self.targets if controls.admin.topic_id(name)]
