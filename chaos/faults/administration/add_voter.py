"""A controller with a new, empty disk joins the voters of a dynamic quorum."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Proof, describe_stopped_nodes
from urteil.chaos.faults.base.voter_fault import VoterFault
from urteil.chaos.log_directories import delete_content
from urteil.chaos.node_selectors import NoTarget


class AddVoter(VoterFault):
    """Replaces the disk of a controller, as KIP-853 describes it: removes the voter, stops its
    process, empties its disk, starts it with a new directory id, and adds it to the voters. It
    fetches the metadata log from the leader before.
    """

    name = "add_voter"
    about = "replace a controller's disk: remove the voter, start it empty, add it"
    effects = frozenset({Effect.STOPS_NODES, Effect.CHANGES_VOTERS})
    proves = "the committed voters have the controller with another directory id than before"

    def begin(self, controls: Controls) -> Proof:
        (node,) = self.targets = (node_selectors.select_running(controls, self.arguments)[0],)
        if node in controls.brokers:
            raise NoTarget(f"{node} is a broker, too, and would lose its replicas: --controllers 3")
        before = controls.quorum.voters().get(node, "no voter")
        controls.quorum.remove_voter(node)
        controls.stop(node)
        with controls.disks.open_log_directories(node) as log_dirs:
            for log_dir in log_dirs:
                delete_content(log_dir)
        joined = controls.start(node)
        controls.quorum.add_voter(node)
        now = controls.quorum.voters().get(node, "no voter")
        text = f"{node}: directory {before} before, {now} now, empty as pid {joined.pid}"
        return Proof(acted=now not in (before, "no voter"), text=text)

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
            if node not in controls.quorum.voters():
                controls.quorum.add_voter(node)
        return f"the voters are {', '.join(controls.quorum.voters())}"

    def find_residual_effects(self, controls: Controls) -> str:
        dead = describe_stopped_nodes(controls, self.targets)
        return dead or super().find_residual_effects(controls)
