"""A topic's replicas move to other brokers under load (KIP-455)."""

from __future__ import annotations

from collections.abc import Mapping

from urteil.chaos.admin_controls import Replicas
from urteil.chaos.capabilities import REASSIGNMENT, Capability
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import Option, flag, number
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import TopicFault
from urteil.chaos.waiting import until

BEGINS_S = 10.0


class Reassign(TopicFault):
    """Replaces the leader of each partition by a broker without a replica; if every broker has one,
    rotates the replicas. Healing waits for the end, or with `cancel` cancels the remaining moves.
    """

    name = "reassign"
    about = "move the replicas of a topic to other brokers; healing waits for the end"
    effects = frozenset({Effect.MOVES_REPLICAS})
    proves = "the replicas of each partition in ZooKeeper before and after"
    deadline_s: float = number(60.0, "time until its end", unit="s", least=0)
    cancel: bool = flag("cancel it at healing")
    _before: Replicas | None = None
    _targets: Replicas | None = None

    @classmethod
    def required_capabilities(cls, options: Mapping[str, Option]) -> tuple[Capability, ...]:
        return (REASSIGNMENT,) if cls.read_options(options).get("cancel") else cls.needs

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, self.arguments.topic
        self.targets = (topic,)
        self._before = before = self.replicas(admin)
        self._targets = {
            partition: self._choose_replicas(controls, partition, nodes)
            for partition, nodes in before.items()
        }
        admin.reassign(topic, self._targets)
        acted = until(lambda: admin.replicas(topic) != before, deadline_s=BEGINS_S)
        moves = (
            f"{partition}: {_join_names(before[partition])} to {_join_names(to)}"
            for partition, to in self._targets.items()
        )
        return Proof(acted=acted, text=f"{topic} moves {'; '.join(moves)}")

    def heal(self, controls: Controls) -> str:
        if self._targets is None or self._before is None:
            return "no replica was moved"
        if self.cancel:
            cancelled = controls.admin.cancel_moves(self.arguments.topic, self._before)
            return f"{len(cancelled)} of {len(self._before)} moves cancelled"
        controls.admin.await_reassigned(
            self.arguments.topic, self._targets, deadline_s=self.deadline_s
        )
        return "all moved and in sync"

    def _choose_replicas(
        self, controls: Controls, partition: int, nodes: tuple[str, ...]
    ) -> tuple[str, ...]:
        others = [node for node in controls.brokers if node not in nodes]
        if not others:
            return (*nodes[1:], nodes[0])
        shift = self.arguments.random().randrange(len(others))
        return (*nodes[1:], others[(shift + partition) % len(others)])


def _join_names(nodes: tuple[str, ...] | object) -> str:
    return ",".join(nodes) if isinstance(nodes, tuple) else str(nodes)
