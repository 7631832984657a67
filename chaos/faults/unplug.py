"""Take the network from a node, as if its cable were pulled; give it back at healing."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import (
    DOCKER,
    KAFKA,
    MIX,
    URTEIL,
    Fault,
    Proof,
    describe_broken_links,
    run_on_all,
)
from urteil.chaos.faults.partition import silence_proven
from urteil.chaos.observations import Link


class Unplug(Fault):
    """Nobody reaches the nodes and they reach nobody; packets vanish, connections hang.

    Proof: probes through the links to and from them, answered before and silent after.
    """

    name = "unplug"
    about = "take the data network from a node's container, plugged in again at healing"
    family = "container"
    proves = "probes over all its links, answered before and silent after; answered once plugged in"
    on_runtimes = (DOCKER,)
    on_targets = (URTEIL, KAFKA, MIX)

    def begin(self, controls: Controls) -> Proof:
        boxes = controls.containers
        self.targets = tuple(node_selectors.select_nodes(controls, self.arguments))
        return silence_proven(
            controls, self._links(controls), lambda: run_on_all(boxes.unplug, self.targets)
        )

    def heal(self, controls: Controls) -> str:
        run_on_all(controls.containers.plug, self.targets)
        return f"{', '.join(self.targets)} plugged in again"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_broken_links(controls, self._links(controls))

    def _links(self, controls: Controls) -> list[Link]:
        chosen = set(self.targets)
        return [
            link for link in controls.net.links() if (link.src in chosen) != (link.dst in chosen)
        ]
