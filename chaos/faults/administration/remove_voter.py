"""A controller leaves the voters of a dynamic quorum; healing adds it again."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.voter_fault import VoterFault


class RemoveVoter(VoterFault):
    """Removes a voter from the quorum (KIP-853). Its process stays, and follows the metadata log as
    an observer. Healing adds it again, with the log that it has. A leader that is removed resigns.
    """

    name = "remove_voter"
    about = "remove a controller from the quorum's voters; add it at healing"
    effects = frozenset({Effect.CHANGES_VOTERS})
    proves = "the committed voters before and after"

    def begin(self, controls: Controls) -> Proof:
        (node,) = self.targets = (node_selectors.select_running(controls, self.arguments)[0],)
        before = controls.quorum.voters()
        controls.quorum.remove_voter(node)
        after = controls.quorum.voters()
        acted = node in before and node not in after
        return Proof(
            acted=acted, text=f"{node}: voters {', '.join(before)}, now {', '.join(after)}"
        )

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            if node not in controls.quorum.voters():
                controls.quorum.add_voter(node)
        return f"the voters are {', '.join(controls.quorum.voters())}"
