"""Elect whoever lives for a partition whose in-sync replicas are all away."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import Proof, until
from urteil.chaos.faults.topic_fault import TopicFault
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import PartitionView

LEADERLESS_S = 20.0
ELECTED_S = 5.0
TRIES = 4


class ElectUnclean(TopicFault):
    """An administrator gives up what the new leader lacks. Other faults must have taken the
    partition its leader; there is no way back.
    """

    name = "elect_unclean"
    about = "ask for an unclean election of a partition that has no leader"
    proves = "a leader from outside the in-sync replicas that ZooKeeper had"
    sample = ""
    options: ClassVar[dict[str, str]] = {
        "leaderless_s": f"how long to wait until nobody leads (default {LEADERLESS_S:g})"
    }

    def voided_promises(self) -> frozenset[str]:
        return frozenset({"clean_election", "durability"})

    def begin(self, controls: Controls) -> Proof:
        topic, partition = self.arguments.topic, self.arguments.partition
        self.targets = (f"{topic}-{partition}",)
        waits_s = self.arguments.number("leaderless_s", LEADERLESS_S)
        if not until(lambda: self._view(controls).leader is None, deadline_s=waits_s):
            raise NoTarget(f"{topic}-{partition} has a leader: nothing is to be elected uncleanly")
        isr = self._view(controls).isr
        answers: dict[int, str] = {}
        for _ in range(TRIES):
            answers = controls.admin.elect(topic, [partition], unclean=True)
            if until(lambda: self._view(controls).leader is not None, deadline_s=ELECTED_S):
                break
        leader = self._view(controls).leader
        refused = answers.get(partition)
        return Proof(
            acted=leader is not None and leader not in isr,
            text=f"{topic}-{partition}: only {', '.join(isr) or 'nobody'} was in sync, "
            f"{leader or 'nobody'} leads now" + (f" ({refused})" if refused else ""),
        )

    def heal(self, controls: Controls) -> str:
        return "what the new leader lacked is lost"

    def _view(self, controls: Controls) -> PartitionView:
        view = controls.partition(self.arguments.topic, self.arguments.partition)
        if view is None:
            raise NoTarget(f"{self.arguments.topic}-{self.arguments.partition} does not exist")
        return view
