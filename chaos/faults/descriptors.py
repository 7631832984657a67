"""A node that can open no more files nor sockets."""

from __future__ import annotations

import time

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.fault import (
    HEALED_S,
    KAFKA,
    MIX,
    URTEIL,
    Fault,
    Proof,
    describe_stopped_nodes,
    run_on_all,
    until,
)
from urteil.chaos.faults.partition import PROBE_S, answers_again, silence_proven
from urteil.chaos.observations import Descriptors, LabFailure, Link, NodeState

FIRST_OPENED = 8
LASTS_S = 1.0


class OutOfDescriptors(Fault):
    """The limit is lowered below what is open (prlimit(2)), and raised again at healing.

    Below what it opened first, so that no connection that ends makes room for another.

    A node may end for it (Apache Kafka does when it cannot write a checkpoint): it is started.
    """

    name = "out_of_descriptors"
    about = "let a node open no more files nor sockets: its limit falls below what it has open"
    family = "process"
    proves = "a new connection, answered before and not after; descriptors open and their limit"
    on_targets = (URTEIL, KAFKA, MIX)

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self._before: dict[str, Descriptors] = {}

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        proof = silence_proven(
            controls,
            self._doors(controls),
            lambda: run_on_all(lambda node: self._limit(controls, node), self.targets),
        )
        text = "; ".join(f"{node}: {was}" for node, was in self._before.items())
        return Proof(acted=proof.acted, text=f"before: {text}; {proof.text}")

    def heal(self, controls: Controls) -> str:
        told = [self._give_back(controls, node) for node in self.targets]
        doors = self._doors(controls)
        run_on_all(lambda node: self._lives_or_ends(controls, node), self.targets)
        told += run_on_all(lambda node: self._run_again(controls, node), self.targets)
        return "; ".join(filter(None, [*told, answers_again(controls, doors)]))

    def find_residual_effects(self, controls: Controls) -> str:
        limits = {node: controls.descriptors(node).limit for node in self._before}
        low = [f"{n}: {limit}" for n, limit in limits.items() if limit < self._before[n].limit]
        return describe_stopped_nodes(controls, self.targets) or "; ".join(low)

    def _limit(self, controls: Controls, node: str) -> None:
        controls.allow_exit(node)
        now = self._before[node] = controls.descriptors(node)
        controls.limit_descriptors(node, min(now.lowest_free, FIRST_OPENED))

    def _give_back(self, controls: Controls, node: str) -> str:
        """The limit, to a process that lost it and lives. An engine may not know yet that one which
        is gone ended."""
        if node not in self._before:
            return ""
        try:
            return f"{node}: {controls.limit_descriptors(node, self._before[node].limit)}"
        except LabFailure:
            if not until(lambda: _is_dead(controls, node), deadline_s=HEALED_S):
                raise
        return ""

    def _lives_or_ends(self, controls: Controls, node: str) -> None:
        """Return once the node is dead, or answered for LASTS_S: one that could not write under
        the limit still answers while it ends. Silent for HEALED_S, it is cut off by others."""
        (door,) = (link for link in self._doors(controls) if link.dst == node)
        answered_s = time.monotonic()

        def is_plain() -> bool:
            nonlocal answered_s
            if _is_dead(controls, node):
                return True
            if not controls.net.probe(door, timeout_s=PROBE_S).answered:
                answered_s = time.monotonic()
            return time.monotonic() - answered_s > LASTS_S

        until(is_plain, deadline_s=HEALED_S)

    def _run_again(self, controls: Controls, node: str) -> str:
        """Start another in the place of one that ended."""
        if _is_dead(controls, node):
            return f"{node} ended and runs again as pid {controls.start(node).pid}"
        controls.allow_exit(node, allowed=False)
        return ""

    def _doors(self, controls: Controls) -> list[Link]:
        """A link to each node, by which a new connection comes."""
        links = {link.dst: link for link in controls.net.links() if link.dst in self.targets}
        return [links[node] for node in self.targets]


def _is_dead(controls: Controls, node: str) -> bool:
    return controls.status(node).state is NodeState.DEAD
