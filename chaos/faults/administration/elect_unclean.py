"""An administrator elects a live broker for a partition without any in-sync replica."""

from __future__ import annotations

from urteil.chaos.capabilities import ELECTIONS
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import TopicFault
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import PartitionView
from urteil.chaos.waiting import until

LEADERLESS_S = 20.0
ELECTED_S = 5.0
TRIES = 4


class ElectUnclean(TopicFault):
    """The records that the new leader lacks are lost; healing cannot restore them. Other faults
    must keep the partition without a leader.
    """

    name = "elect_unclean"
    about = "run an unclean election for a partition without a leader"
    effects = frozenset({Effect.ELECTS_UNCLEANLY})
    needs = (ELECTIONS,)
    proves = "a leader that was not in the ISR in ZooKeeper"
    sample = ""
    leaderless_s: float = number(
        LEADERLESS_S, "time to wait for a partition without a leader", unit="s", least=0
    )

    def voided_promises(self) -> frozenset[str]:
        return frozenset({"clean_election", "durability"})

    def begin(self, controls: Controls) -> Proof:
        topic, partition = self.arguments.topic, self.arguments.partition
        self.targets = (f"{topic}-{partition}",)
        if not until(lambda: self._view(controls).leader is None, deadline_s=self.leaderless_s):
            raise NoTarget(f"{topic}-{partition} has a leader: no unclean election is possible")
        isr = self._view(controls).isr
        errors: dict[int, str] = {}
        for _ in range(TRIES):
            errors = controls.admin.elect(topic, [partition], unclean=True)
            if until(lambda: self._view(controls).leader is not None, deadline_s=ELECTED_S):
                break
        leader = self._view(controls).leader
        error = errors.get(partition)
        return Proof(
            acted=leader is not None and leader not in isr,
            text=f"{topic}-{partition}: ISR was {', '.join(isr) or 'empty'}, "
            f"{leader or 'no broker'} leads now" + (f" ({error})" if error else ""),
        )

    def heal(self, controls: Controls) -> str:
        return "records that the new leader lacked are lost"

    def _view(self, controls: Controls) -> PartitionView:
        view = controls.partition(self.arguments.topic, self.arguments.partition)
        if view is None:
            raise NoTarget(f"{self.arguments.topic}-{self.arguments.partition} does not exist")
        return view
