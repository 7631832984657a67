"""A topic gets more partitions while clients write and read it."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import TopicFault


class AddPartitions(TopicFault):
    """Healing does not remove the new partitions, because Kafka cannot."""

    name = "add_partitions"
    about = "add partitions to a topic under load"
    effects = frozenset({Effect.ADDS_PARTITIONS})
    proves = "the number of partitions in ZooKeeper before and after, all of them with a leader"
    by: int = whole_number(2, "number of new partitions", least=1, most=1000)

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, self.arguments.topic
        self.targets = (topic,)
        before = len(self.replicas(admin))
        count = before + self.by
        admin.add_partitions(topic, count)
        views = controls.partitions(topic)
        led = sum(view.leader is not None for view in views)
        acted = before < len(views) == led == count
        text = f"{topic}: {before} partitions before, {len(views)} now, {led} of them led"
        return Proof(acted=acted, text=text)

    def heal(self, controls: Controls) -> str:
        return f"{len(controls.partitions(self.arguments.topic))} partitions stay"
