"""A node that cannot open further files or sockets."""

from __future__ import annotations

import time

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.cut_links import PROBE_S, describe_answers, prove_silence
from urteil.chaos.faults.base.fault import (
    HEALED_S,
    ON_THIS_MACHINE,
    STARTED_BY_LAB,
    Fault,
    Proof,
    describe_stopped_nodes,
)
from urteil.chaos.observations import Descriptors, LabFailure, Link, NodeState
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until

FIRST_OPENED = 8
LASTS_S = 1.0


class OutOfDescriptors(Fault):
    """Lowers the limit of open files (prlimit(2)) below the descriptors in use; healing raises it.

    The limit is below the first descriptors that the process opened, so that the end of a
    connection makes no room for another one. A node may exit (Apache Kafka does when it cannot
    write a checkpoint); healing starts it.
    """

    name = "out_of_descriptors"
    about = "lower a node's limit of open files below those in use: it can open no file or socket"
    effects = frozenset({Effect.EXHAUSTS_DESCRIPTORS})
    on_runtimes = ON_THIS_MACHINE
    proves = "a new connection, answered before and not after; open descriptors and their limit"
    on_targets = STARTED_BY_LAB

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self._before: dict[str, Descriptors] = {}

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        proof = prove_silence(
            controls,
            self._service_links(controls),
            lambda: run_on_all(lambda node: self._limit(controls, node), self.targets),
        )
        text = "; ".join(f"{node}: {was}" for node, was in self._before.items())
        return Proof(acted=proof.acted, text=f"before: {text}; {proof.text}")

    def heal(self, controls: Controls) -> str:
        texts = [self._restore_limit(controls, node) for node in self.targets]
        links = self._service_links(controls)
        run_on_all(lambda node: self._await_recovery_or_exit(controls, node), self.targets)
        texts += run_on_all(lambda node: self._restart(controls, node), self.targets)
        return "; ".join(filter(None, [*texts, describe_answers(controls, links)]))

    def find_residual_effects(self, controls: Controls) -> str:
        limits = {node: controls.descriptors(node).limit for node in self._before}
        low = [f"{n}: {limit}" for n, limit in limits.items() if limit < self._before[n].limit]
        return describe_stopped_nodes(controls, self.targets) or "; ".join(low)

    def _limit(self, controls: Controls, node: str) -> None:
        controls.allow_exit(node)
        now = self._before[node] = controls.descriptors(node)
        controls.limit_descriptors(node, min(now.lowest_free, FIRST_OPENED))

    def _restore_limit(self, controls: Controls, node: str) -> str:
        """Restore the limit of a live process. A container engine may report the end of a process
        late."""
        if node not in self._before:
            return ""
        try:
            return f"{node}: {controls.limit_descriptors(node, self._before[node].limit)}"
        except LabFailure:
            if not until(lambda: _is_dead(controls, node), deadline_s=HEALED_S):
                raise
        return ""

    def _await_recovery_or_exit(self, controls: Controls, node: str) -> None:
        """Wait until the node is dead or has answered for LASTS_S: a node that failed to write
        still answers while it exits. A node that is silent for HEALED_S is cut off by other
        faults."""
        (link,) = (
            service_link
            for service_link in self._service_links(controls)
            if service_link.dst == node
        )
        answered_s = time.monotonic()

        def is_decided() -> bool:
            nonlocal answered_s
            if _is_dead(controls, node):
                return True
            if not controls.net.probe(link, timeout_s=PROBE_S).answered:
                answered_s = time.monotonic()
            return time.monotonic() - answered_s > LASTS_S

        until(is_decided, deadline_s=HEALED_S)

    def _restart(self, controls: Controls, node: str) -> str:
        """Start the node if it exited."""
        if _is_dead(controls, node):
            return f"{node} exited and runs again as pid {controls.start(node).pid}"
        controls.allow_exit(node, allowed=False)
        return ""

    def _service_links(self, controls: Controls) -> list[Link]:
        """One link to each node, for new connections."""
        links = {link.dst: link for link in controls.net.links() if link.dst in self.targets}
        return [links[node] for node in self.targets]


def _is_dead(controls: Controls, node: str) -> bool:
    return controls.status(node).state is NodeState.DEAD
