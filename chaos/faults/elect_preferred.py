"""Prefer other leaders and have them elected, under load."""

from __future__ import annotations

from urteil.chaos.admin_controls import Replicas
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import Proof, until
from urteil.chaos.faults.topic_fault import TopicFault

DEADLINE_S = 30.0


class ElectPreferred(TopicFault):
    """The order of replicas is turned, no data moves; then the first of each is elected.

    Healing turns it back and elects again.
    """

    name = "elect_preferred"
    about = "turn the order of a topic's replicas and elect preferred leaders, there and back"
    proves = "the leaders that ZooKeeper has of the partitions before and after"
    _first: Replicas | None = None

    def begin(self, controls: Controls) -> Proof:
        self.targets = (self.arguments.topic,)
        self._first = self.replicas(controls.admin)
        before = self._leaders(controls)
        turned = {one: (*nodes[1:], nodes[0]) for one, nodes in self._first.items()}
        acted = self._elect(controls, turned)
        now = self._leaders(controls)
        told = (
            f"{self.arguments.topic}-{one}: {before[one]}, then {now.get(one)}" for one in before
        )
        return Proof(acted=acted and now != before, text="; ".join(told))

    def heal(self, controls: Controls) -> str:
        if self._first is None:
            return "nothing was turned"
        elected = self._elect(controls, self._first)
        return "the leaders of before" if elected else "not all leaders of before"

    def find_residual_effects(self, controls: Controls) -> str:
        return (
            "" if controls.admin.replicas(self.arguments.topic) == self._first else "another order"
        )

    def _elect(self, controls: Controls, wanted: Replicas) -> bool:
        """Whether the first replicas lead. One that is not in sync yet is asked for again."""
        admin, topic = controls.admin, self.arguments.topic
        admin.reassign(topic, wanted)
        admin.await_reassigned(topic, wanted, deadline_s=DEADLINE_S)
        first = {one: nodes[0] for one, nodes in wanted.items()}

        def led() -> bool:
            if self._leaders(controls) == first:
                return True
            admin.elect(topic, list(first), unclean=False)
            return self._leaders(controls) == first

        return until(led, deadline_s=DEADLINE_S)

    def _leaders(self, controls: Controls) -> dict[int, str | None]:
        return {view.partition: view.leader for view in controls.partitions(self.arguments.topic)}
