"""Delete a topic while one of its replicas is down, and make it anew when that is back."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import Proof, describe_stopped_nodes, until
from urteil.chaos.faults.topic_fault import TopicFault

RECORDS, RECORDS_ANEW = 40, 7
ASKED_S = 10.0


class RecreateTopic(TopicFault):
    """A topic of its own: filled, wished away with a follower dead, so that the deletion waits for
    it. Healing starts the follower, waits for the end of the old topic and makes one of that name,
    which must have new records alone.
    """

    name = "recreate_topic"
    about = "delete a topic while a replica of it is down, and make it anew after its return"
    selectors = "anything: the topic is its own"
    proves = "the wish stands in ZooKeeper while the replica is away; the ids of both topics"
    _old_id: str | None = None
    _anew = ""

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, f"anew-{self.arguments.random().randrange(1 << 32):08x}"
        factor = min(3, len(controls.brokers))
        self.targets = (topic,)
        self._old_id = admin.create_topic(topic, partitions=1, replication_factor=factor)
        filled = admin.fill(topic, RECORDS)
        view = controls.partition(topic, 0)
        followers = [one for one in view.replicas if one != view.leader] if view else []
        self.targets = (topic, *followers[-1:])
        for node in followers[-1:]:
            controls.kill(node)
        admin.delete_topic(topic, wait=False)
        waits = admin.topic_id(topic) == self._old_id
        return Proof(
            acted=bool(followers) and filled == RECORDS and waits,
            text=f"{topic} (id {self._old_id}) has {filled} records, {self.targets[-1]} is dead, "
            f"the deletion {'waits for it' if waits else 'is done without it'}",
        )

    def heal(self, controls: Controls) -> str:
        if self._anew or self._old_id is None:
            return "the topic was made anew"
        admin, topic = controls.admin, self.targets[0]
        for node in self.targets[1:]:
            controls.start(node)
        admin.delete_topic(topic)
        factor = min(3, len(controls.brokers))
        self._anew = admin.create_topic(topic, partitions=1, replication_factor=factor)
        admin.fill(topic, RECORDS_ANEW)
        until(lambda: admin.record_count(topic) == RECORDS_ANEW, deadline_s=ASKED_S)
        return f"{topic} has the id {self._anew} and {admin.record_count(topic)} records"

    def find_residual_effects(self, controls: Controls) -> str:
        topic = self.targets[0]
        if controls.admin.topic_id(topic) in (None, self._old_id):
            return f"{topic} was not made anew"
        count = controls.admin.record_count(topic)
        if count != RECORDS_ANEW:
            return f"{topic} has {count} records, {RECORDS_ANEW} were written to it"
        return describe_stopped_nodes(controls, self.targets[1:])
