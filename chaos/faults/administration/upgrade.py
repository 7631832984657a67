"""A rolling upgrade: newer code first, then the newer protocol between nodes.

With ZooKeeper the protocol is a setting of each broker, so the second step is another restart of
all of them. In KRaft it is a feature in the metadata log, which a request raises: the fault's
healing sends it. Between the two, other faults meet newer code under the older metadata version.
"""

from __future__ import annotations

from collections.abc import Mapping

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.fault import (
    STARTED_BY_LAB,
    Fault,
    Proof,
    describe_stopped_nodes,
)

NEWER_CODE, NEWER_PROTOCOL = 1, 2
METADATA_VERSION = "metadata.version"


class Upgrade(Fault):
    """Stops each broker and starts it as the next release, one by one, when the cluster is healthy.
    The cluster must have started as the previous release (`ClusterSpec.older`).

    In KRaft, controllers with nodes of their own precede the brokers. Healing raises
    `metadata.version` and the other features to the levels of the next release, and starts no node
    that another fault has ended meanwhile.
    """

    name = "upgrade"
    about = (
        "rolling upgrade of all nodes from the previous release: newer code, then the newer "
        "protocol (ZooKeeper) or, at healing, the newer metadata.version (KRaft)"
    )
    effects = frozenset({Effect.STOPS_NODES, Effect.RESTARTS_NODES, Effect.CHANGES_RELEASE})
    proves = (
        "every process id ended, and the release of every node before and after; in KRaft also the "
        "finalized metadata.version that a broker reports before and after"
    )
    sample = ""
    expiry_s = 1800.0
    on_targets = STARTED_BY_LAB
    deadline_s: float = number(
        90.0, "time for a node to start, and then for the cluster to be healthy", unit="s", least=0
    )

    restarting = ""
    """The node that the fault has stopped and not started yet."""
    has_newer_code = False
    levels: tuple[Mapping[str, int], Mapping[str, int]] | None = None
    """The finalized features before and after healing, in KRaft."""

    def begin(self, controls: Controls) -> Proof:
        own_controllers = [node for node in controls.metadata_nodes if node in controls.voters]
        brokers = node_selectors.select_nodes(controls, self.arguments)
        self.targets = tuple(dict.fromkeys([*own_controllers, *brokers]))
        before = {node: controls.admin.release(node) for node in self.targets}
        pids = {node: controls.status(node).pid for node in self.targets}
        for step in (NEWER_CODE, NEWER_PROTOCOL) if controls.zookeepers else (NEWER_CODE,):
            for node in self.targets:
                self._restart(controls, node, step)
        self.has_newer_code = True
        after = {node: controls.admin.release(node) for node in self.targets}
        texts = [f"{node}: {before[node]}, then {after[node]}" for node in self.targets]
        acted = bool(texts) and all(
            before[node] != after[node] and controls.status(node).pid != pids[node]
            for node in self.targets
        )
        return Proof(acted=acted, text="; ".join(texts))

    def _restart(self, controls: Controls, node: str, step: int) -> None:
        self.restarting = node
        controls.stop(node)
        controls.admin.upgrade(node, step=step)
        controls.start(node, deadline_s=self.deadline_s)
        self.restarting = ""
        controls.await_healthy(deadline_s=self.deadline_s)

    def heal(self, controls: Controls) -> str:
        if self.restarting:
            controls.start(self.restarting)
        if self.has_newer_code and self.levels is None and not controls.zookeepers:
            before = controls.admin.features()
            self.levels = before, controls.admin.raise_features()
        return f"{len(self.targets)} nodes were restarted"

    def final_proof(self, proof: Proof) -> Proof:
        if self.levels is None:
            return proof
        before, after = (levels.get(METADATA_VERSION, 0) for levels in self.levels)
        others = ", ".join(
            f"{feature} {level}"
            for feature, level in sorted(self.levels[1].items())
            if feature != METADATA_VERSION and level != self.levels[0].get(feature)
        )
        text = f"{proof.text}; {METADATA_VERSION} {before}, then {after}"
        return Proof(
            acted=proof.acted and after > before, text=f"{text} ({others})" if others else text
        )

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
