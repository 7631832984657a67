"""An administrator allows unclean elections for a topic with a leaderless partition."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import number
from urteil.chaos.faults.administration.elect_unclean import LEADERLESS_S
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.topic_fault import SettingFault
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.waiting import until


class AllowUnclean(SettingFault):
    """Sets `unclean.leader.election.enable` of a topic while other faults keep the partition
    without a leader. The controller must then elect a live broker without a further request.
    """

    name = "allow_unclean"
    listed_after = "elect_unclean"
    about = "allow unclean elections for a topic while a partition has no leader"
    effects = frozenset({Effect.ALLOWS_UNCLEAN_ELECTIONS})
    sample = ""
    leaderless_s: float = number(
        LEADERLESS_S, "time to wait for a partition without a leader", unit="s", least=0
    )

    def requested_settings(self) -> dict[str, str]:
        return {"unclean.leader.election.enable": "true"}

    def voided_promises(self) -> frozenset[str]:
        return frozenset({"clean_election", "durability"})

    def begin(self, controls: Controls) -> Proof:
        topic, partition = self.arguments.topic, self.arguments.partition

        def is_led() -> bool:
            view = controls.partition(topic, partition)
            return view is None or view.leader is not None

        if not until(lambda: not is_led(), deadline_s=self.leaderless_s):
            raise NoTarget(f"{topic}-{partition} has a leader: no unclean election to allow")
        return super().begin(controls)
