"""Faults that change the voters of a dynamic quorum."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.fault import KRAFT, PROCESS, Fault


class VoterFault(Fault):
    """After healing each of its targets is a voter."""

    selectors = "a role or a node: controllers of a dynamic quorum"
    changes_voters = True
    on_runtimes = (PROCESS,)
    on_targets = (KRAFT,)
    sample = ""
    expiry_s = 600.0

    def find_residual_effects(self, controls: Controls) -> str:
        missing = [node for node in self.targets if node not in controls.quorum.voters()]
        return f"{', '.join(missing)} is no voter" if missing else ""
