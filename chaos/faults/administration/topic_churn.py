"""Topics are created and deleted beside the load."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import TopicFault
from urteil.chaos.waiting import until

PARTITIONS = 3
GONE_S = 30.0


class TopicChurn(TopicFault):
    """Creates topics of its own and deletes half of them at once, the others at healing."""

    name = "topic_churn"
    about = "create and delete topics while clients use other topics"
    effects = frozenset({Effect.DELETES_TOPICS})
    selectors = "anything: the fault creates its own topics"
    proves = "the ids of the topics in ZooKeeper; those deleted are gone"
    count: int = whole_number(4, "number of topics to create", least=1, most=1000)

    def begin(self, controls: Controls) -> Proof:
        admin, mark = controls.admin, f"{self.arguments.random().randrange(1 << 32):08x}"
        names = [f"churn-{mark}-{n}" for n in range(self.count)]
        self.targets = tuple(names)
        factor = min(3, len(controls.brokers))
        ids = [
            admin.create_topic(name, partitions=PARTITIONS, replication_factor=factor)
            for name in names
        ]
        deleted = names[::2]
        for name in deleted:
            admin.delete_topic(name)
        undeleted = [name for name in deleted if admin.topic_id(name)]
        acted = bool(names) and len(set(ids)) == len(names) and all(ids) and not undeleted
        return Proof(
            acted=acted,
            text=f"{len(names)} topics of {PARTITIONS} partitions created (ids {', '.join(ids)}), "
            f"{len(deleted)} of them deleted and gone",
        )

    def heal(self, controls: Controls) -> str:
        """Delete the other topics without waiting: a deletion needs every replica, and the healing
        of a crash may follow this healing."""
        present = [name for name in self.targets if controls.admin.topic_id(name)]
        for name in present:
            controls.admin.delete_topic(name, wait=False)
        return f"{len(present)} more topics marked for deletion"

    def find_residual_effects(self, controls: Controls) -> str:
        until(lambda: not self._remaining_topics(controls), deadline_s=GONE_S)
        return ", ".join(self._remaining_topics(controls))

    def _remaining_topics(self, controls: Controls) -> list[str]:
        return [name for name in self.targets if controls.admin.topic_id(name)]
