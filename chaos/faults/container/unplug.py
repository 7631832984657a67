"""A node loses its network, as if its cable were pulled, until healing."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.cut_links import prove_silence
from urteil.chaos.faults.base.fault import (
    DOCKER,
    WITH_ZOOKEEPER,
    Fault,
    Proof,
    describe_broken_links,
)
from urteil.chaos.observations import Link
from urteil.chaos.parallel import run_on_all


class Unplug(Fault):
    """Disconnects nodes in both directions: packets vanish and connections hang.

    Proof: probes through the links to and from the nodes, answered before and silent after.
    """

    name = "unplug"
    about = "disconnect a node's container from the data network; reconnect it at healing"
    effects = frozenset({Effect.CUTS_LINKS, Effect.UNPLUGS_NODES})
    proves = (
        "probes through all its links, answered before, silent after, answered again at the end"
    )
    on_runtimes = (DOCKER,)
    on_targets = WITH_ZOOKEEPER

    def begin(self, controls: Controls) -> Proof:
        boxes = controls.containers
        self.targets = tuple(node_selectors.select_nodes(controls, self.arguments))
        return prove_silence(
            controls, self._links(controls), lambda: run_on_all(boxes.unplug, self.targets)
        )

    def heal(self, controls: Controls) -> str:
        run_on_all(controls.containers.plug, self.targets)
        return f"{', '.join(self.targets)} connected again"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_broken_links(controls, self._links(controls))

    def _links(self, controls: Controls) -> list[Link]:
        chosen = set(self.targets)
        return [
            link for link in controls.net.links() if (link.src in chosen) != (link.dst in chosen)
        ]
