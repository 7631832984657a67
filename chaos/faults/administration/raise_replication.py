"""Every partition of a topic gets one more replica under load."""

from __future__ import annotations

from urteil.chaos.admin_controls import Replicas
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import TopicFault


class RaiseReplication(TopicFault):
    """Where every broker already has a replica, the fault first removes one and adds it again.

    Healing restores the former replicas.
    """

    name = "raise_replication"
    about = "raise the replication factor of a topic by reassignment; restore it at healing"
    effects = frozenset({Effect.MOVES_REPLICAS})
    proves = "the number of in-sync replicas of each partition in ZooKeeper before and after"
    deadline_s: float = number(60.0, "time for each step", unit="s", least=0)
    _first: Replicas | None = None

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, self.arguments.topic
        self.targets = (topic,)
        self._first = before = self.replicas(admin)
        if all(len(nodes) == len(controls.brokers) for nodes in before.values()):
            before = {partition: nodes[:-1] for partition, nodes in before.items()}
            self._reassign(controls, before)
        raised = {
            partition: self._add_replica(controls, partition, nodes)
            for partition, nodes in before.items()
        }
        self._reassign(controls, raised)
        sizes = {view.partition: len(view.isr) for view in controls.partitions(topic)}
        acted = all(
            sizes.get(partition, 0) == len(nodes) + 1 for partition, nodes in before.items()
        )
        text = "; ".join(f"{topic}-{p}: {len(before[p])} replicas, then {sizes.get(p)} in sync"
                         for p in before)  # fmt: skip
        return Proof(acted=acted, text=text)

    def heal(self, controls: Controls) -> str:
        if self._first is None or controls.admin.replicas(self.arguments.topic) == self._first:
            return "the former replicas are in place"
        self._reassign(controls, self._first)
        return "the former replicas are restored"

    def find_residual_effects(self, controls: Controls) -> str:
        return (
            ""
            if controls.admin.replicas(self.arguments.topic) == self._first
            else "the replicas differ"
        )

    def _reassign(self, controls: Controls, replicas: Replicas) -> None:
        controls.admin.reassign(self.arguments.topic, replicas)
        controls.admin.await_reassigned(self.arguments.topic, replicas, deadline_s=self.deadline_s)

    def _add_replica(
        self, controls: Controls, partition: int, nodes: tuple[str, ...]
    ) -> tuple[str, ...]:
        others = [node for node in controls.brokers if node not in nodes]
        return (*nodes, others[partition % len(others)])
