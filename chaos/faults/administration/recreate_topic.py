"""A topic is deleted while one of its replicas is down, and created again."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Proof, describe_stopped_nodes
from urteil.chaos.faults.base.topic_fault import TopicFault
from urteil.chaos.waiting import until

RECORDS, NEW_RECORDS = 40, 7
ASKED_S = 10.0


class RecreateTopic(TopicFault):
    """Creates a topic of its own with records and deletes it while a follower is dead. In the end
    there is another topic of that name, which must hold only new records.

    With ZooKeeper the deletion waits for the follower: healing starts it, waits for the end of the
    old topic and creates the other one. KRaft deletes at once: the other topic is created while the
    follower is dead, which returns with the log of the old one.
    """

    name = "recreate_topic"
    about = (
        "delete a topic while a replica is down; create it again when the replica is back, in "
        "KRaft at once"
    )
    effects = frozenset({Effect.DELETES_TOPICS, Effect.KILLS_NODES})
    selectors = "anything: the fault creates its own topic"
    proves = (
        "the deletion is pending in ZooKeeper while the replica is down, or done in KRaft; the ids "
        "of both topics"
    )
    _old_id: str | None = None
    _new_id = ""

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, f"anew-{self.arguments.random().randrange(1 << 32):08x}"
        factor = min(3, len(controls.brokers))
        self.targets = (topic,)
        self._old_id = admin.create_topic(topic, partitions=1, replication_factor=factor)
        filled = admin.fill(topic, RECORDS)
        view = controls.partition(topic, 0)
        followers = [replica for replica in view.replicas if replica != view.leader] if view else []
        self.targets = (topic, *followers[-1:])
        for node in followers[-1:]:
            controls.kill(node)
        admin.delete_topic(topic, wait=False)
        waits = admin.topic_id(topic) == self._old_id
        if controls.voters:
            outcome = self._create_again(controls)
        else:
            outcome = f"the deletion {'waits for it' if waits else 'did not wait for it'}"
        return Proof(
            acted=bool(followers) and filled == RECORDS and waits is not bool(controls.voters),
            text=f"{topic} (id {self._old_id}) has {filled} records, {self.targets[-1]} is dead, "
            f"{outcome}",
        )

    def heal(self, controls: Controls) -> str:
        for node in self.targets[1:]:
            controls.start(node)
        if self._new_id or self._old_id is None:
            return "the topic was created again"
        controls.admin.delete_topic(self.targets[0])
        return self._create_again(controls)

    def _create_again(self, controls: Controls) -> str:
        admin, topic = controls.admin, self.targets[0]
        factor = min(3, len(controls.brokers))
        self._new_id = admin.create_topic(topic, partitions=1, replication_factor=factor)
        admin.fill(topic, NEW_RECORDS)
        until(lambda: admin.record_count(topic) == NEW_RECORDS, deadline_s=ASKED_S)
        return f"{topic} has the id {self._new_id} and {admin.record_count(topic)} records"

    def find_residual_effects(self, controls: Controls) -> str:
        topic = self.targets[0]
        if controls.admin.topic_id(topic) in (None, self._old_id):
            return f"{topic} was not created again"
        count = controls.admin.record_count(topic)
        if count != NEW_RECORDS:
            return f"{topic} has {count} records, {NEW_RECORDS} were written to it"
        return describe_stopped_nodes(controls, self.targets[1:])
