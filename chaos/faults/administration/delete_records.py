"""An administrator deletes the older records of a topic while clients write and read it."""

from __future__ import annotations

from urteil.chaos.capabilities import RECORD_DELETION
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag, number
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import TopicFault


class DeleteRecords(TopicFault):
    """DeleteRecords for all partitions: the log start offsets rise while consumers read there.

    Healing deletes again, among the records that were written meanwhile. Nothing restores them.
    """

    name = "delete_records"
    about = "delete the older records of every partition (DeleteRecords), and again at healing"
    effects = frozenset({Effect.DELETES_RECORDS})
    needs = (RECORD_DELETION,)
    proves = "the log start offsets before and after"
    share: float = number(0.5, "share of each partition's records to delete", least=0, most=1)
    once: bool = flag("do not delete again at healing")

    def voided_promises(self) -> frozenset[str]:
        """Acknowledged records are deleted before the time that the topic promised."""
        return frozenset({"retention"})

    def begin(self, controls: Controls) -> Proof:
        topic = self.arguments.topic
        self.targets = (topic,)
        self.replicas(controls.admin)
        before, now = self._delete(controls)
        return Proof(acted=now != before, text=f"{topic}: log starts {before} before, {now} now")

    def _delete(self, controls: Controls) -> tuple[str, str]:
        """The log start offsets before and after."""
        admin, topic = controls.admin, self.arguments.topic
        held = admin.offsets(topic)
        admin.delete_records(
            topic,
            {
                partition: start + int((end - start) * self.share)
                for partition, (start, end) in held.items()
            },
        )
        return _starts(held), _starts(admin.offsets(topic))

    def heal(self, controls: Controls) -> str:
        if self.once:
            return "deleted records stay deleted"
        before, now = self._delete(controls)
        return f"{self.arguments.topic} log starts {before} before, {now} now"


def _starts(held: dict[int, tuple[int, int]]) -> str:
    return ", ".join(str(start) for _, (start, _) in sorted(held.items()))
