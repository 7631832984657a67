"""Allow unclean elections for a topic that has lost the leader of a partition."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.aim import Aim
from urteil.chaos.controls import Controls
from urteil.chaos.faults.administrative import SettingFault
from urteil.chaos.faults.base import Proof, until
from urteil.chaos.faults.elect_unclean import LEADERLESS_S
from urteil.chaos.selectors import NoTarget


class AllowUnclean(SettingFault):
    """`unclean.leader.election.enable` of a topic, set while other faults have taken the partition
    its leader; a broker that lives is to lead then, without being asked.
    """

    name = "allow_unclean"
    about = "allow unclean elections for a topic of which a partition has no leader"
    sample = ""
    options: ClassVar[dict[str, str]] = {
        "leaderless_s": f"how long to wait until nobody leads (default {LEADERLESS_S:g})"
    }

    def __init__(self, aim: Aim) -> None:
        super().__init__(aim)
        self.wanted = {"unclean.leader.election.enable": "true"}

    def voids(self) -> frozenset[str]:
        return frozenset({"clean_election", "durability"})

    def begin(self, controls: Controls) -> Proof:
        topic, partition = self.aim.topic, self.aim.partition

        def is_led() -> bool:
            view = controls.partition(topic, partition)
            return view is None or view.leader is not None

        waits_s = self.aim.number("leaderless_s", LEADERLESS_S)
        if not until(lambda: not is_led(), deadline_s=waits_s):
            raise NoTarget(f"{topic}-{partition} has a leader: nothing is to be elected uncleanly")
        return super().begin(controls)
