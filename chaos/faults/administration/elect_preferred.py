"""An administrator changes the preferred leaders and elects them under load."""

from __future__ import annotations

from urteil.chaos.admin_controls import Replicas
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import TopicFault
from urteil.chaos.waiting import until

DEADLINE_S = 30.0


class ElectPreferred(TopicFault):
    """Rotates the order of each partition's replicas, which moves no data, then elects the first.

    Healing restores the order and elects again.
    """

    name = "elect_preferred"
    about = "rotate a topic's replicas and elect the preferred leaders; undo both at healing"
    effects = frozenset({Effect.MOVES_LEADERS})
    proves = "the leaders of the partitions in ZooKeeper before and after"
    _first: Replicas | None = None

    def begin(self, controls: Controls) -> Proof:
        self.targets = (self.arguments.topic,)
        self._first = self.replicas(controls.admin)
        before = self._leaders(controls)
        rotated = {partition: (*nodes[1:], nodes[0]) for partition, nodes in self._first.items()}
        acted = self._elect(controls, rotated)
        now = self._leaders(controls)
        moves = (
            f"{self.arguments.topic}-{partition}: {before[partition]}, then {now.get(partition)}"
            for partition in before
        )
        return Proof(acted=acted and now != before, text="; ".join(moves))

    def heal(self, controls: Controls) -> str:
        if self._first is None:
            return "the order never changed"
        elected = self._elect(controls, self._first)
        return "the former leaders lead" if elected else "not all former leaders lead"

    def find_residual_effects(self, controls: Controls) -> str:
        return (
            ""
            if controls.admin.replicas(self.arguments.topic) == self._first
            else "the order of replicas differs"
        )

    def _elect(self, controls: Controls, replicas: Replicas) -> bool:
        """Whether the first replicas lead. Repeats the election while one of them is not in
        sync."""
        admin, topic = controls.admin, self.arguments.topic
        admin.reassign(topic, replicas)
        admin.await_reassigned(topic, replicas, deadline_s=DEADLINE_S)
        first = {partition: nodes[0] for partition, nodes in replicas.items()}

        def is_elected() -> bool:
            if self._leaders(controls) == first:
                return True
            admin.elect(topic, list(first), unclean=False)
            return self._leaders(controls) == first

        return until(is_elected, deadline_s=DEADLINE_S)

    def _leaders(self, controls: Controls) -> dict[int, str | None]:
        return {view.partition: view.leader for view in controls.partitions(self.arguments.topic)}
