"""Delete the older records of a topic while it is written and read."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.fault import Proof
from urteil.chaos.faults.topic_fault import TopicFault

SHARE = 0.5


class DeleteRecords(TopicFault):
    """DeleteRecords of all partitions: their begins move under those who read there.

    Healing deletes once more, of what was written meanwhile; what is gone stays gone.
    """

    name = "delete_records"
    about = "delete the older records of every partition (DeleteRecords), and again at healing"
    proves = "where partitions begin, before and after"
    options: ClassVar[dict[str, str]] = {
        "share": f"of what each partition holds, how much goes (default {SHARE:g})",
        "once": "healing deletes nothing",
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.share = arguments.number("share", SHARE, least=0, most=1)

    def voided_promises(self) -> frozenset[str]:
        """What was acknowledged goes sooner than the topic said when it was sent."""
        return frozenset({"retention"})

    def begin(self, controls: Controls) -> Proof:
        topic = self.arguments.topic
        self.targets = (topic,)
        self.replicas(controls.admin)
        before, now = self._delete(controls)
        return Proof(acted=now != before, text=f"{topic} began at {before}, and at {now} now")

    def _delete(self, controls: Controls) -> tuple[str, str]:
        """Where the partitions began, and begin now."""
        admin, topic = controls.admin, self.arguments.topic
        held = admin.offsets(topic)
        admin.delete_records(
            topic,
            {one: start + int((end - start) * self.share) for one, (start, end) in held.items()},
        )
        return _starts(held), _starts(admin.offsets(topic))

    def heal(self, controls: Controls) -> str:
        if self.arguments.flag("once"):
            return "what is gone stays gone"
        before, now = self._delete(controls)
        return f"{self.arguments.topic} began at {before}, and begins at {now} from now on"


def _starts(held: dict[int, tuple[int, int]]) -> str:
    return ", ".join(str(start) for _, (start, _) in sorted(held.items()))
