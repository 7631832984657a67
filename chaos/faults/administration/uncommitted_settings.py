"""Settings of a topic change at a controller that cannot commit them."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.fault import KRAFT, Proof
from urteil.chaos.faults.base.topic_fault import TopicFault

CHANGED = "segment.ms"
ADDED = ("file.delete.delay.ms", "flush.ms", "delete.retention.ms", "max.compaction.lag.ms")
FIRST_MS = 600_000_000
"""Long enough to have no effect within a run."""


class UncommittedSettings(TopicFault):
    """Requests new settings of the topic and changes of its `segment.ms`, in turn, while the
    quorum's leader is cut off from the other controllers, until a request is answered.

    The leader appends each change and answers none. When it learns of its successor, it must undo
    them all. Healing sets what was set before.
    """

    name = "uncommitted_settings"
    about = "request settings of a topic from a quorum's leader that cannot commit them"
    effects = frozenset({Effect.CHANGES_SETTINGS})
    on_targets = (KRAFT,)
    proves = "the number of requests without an answer"
    sample = ""
    wait_ms: int = whole_number(1000, "wait for each answer", unit="ms", least=100, most=10_000)

    _before: dict[str, str | None] | None = None

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, self.arguments.topic
        self.targets = (topic,)
        self.replicas(admin)
        before = admin.config(topic)
        self._before = {name: before.get(name) for name in (CHANGED, *ADDED)}
        unanswered: list[str] = []
        for number, added in enumerate(ADDED):
            for name in (added, CHANGED):
                settings = {name: str(FIRST_MS + number)}
                if admin.request_config(topic, settings, wait_s=self.wait_ms / 1000):
                    return self._proof(unanswered)
                unanswered.append(name)
        return self._proof(unanswered)

    def _proof(self, unanswered: list[str]) -> Proof:
        return Proof(
            acted=CHANGED in unanswered,
            text=f"{len(unanswered)} of {2 * len(ADDED)} changes of {self.arguments.topic} got no "
            f"answer: {', '.join(unanswered)}",
        )

    def heal(self, controls: Controls) -> str:
        if self._before is None:
            return "nothing was requested"
        controls.admin.set_config(self.arguments.topic, self._before)
        return f"the settings of {self.arguments.topic} are as before"

    def find_residual_effects(self, controls: Controls) -> str:
        now = controls.admin.config(self.arguments.topic)
        differing = [n for n, value in (self._before or {}).items() if now.get(n) != value]
        return f"{self.arguments.topic} has another {', '.join(differing)}" if differing else ""
