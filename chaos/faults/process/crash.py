"""A node is killed by SIGKILL and starts again at healing. It keeps its disk."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import (
    Fault,
    Proof,
    describe_stopped_nodes,
    was_killed,
)
from urteil.chaos.observations import NodeState, NodeStatus
from urteil.chaos.parallel import run_on_all


class Crash(Fault):
    """Kills processes without warning. Proof: their process ids no longer exist."""

    name = "crash"
    about = "SIGKILL of a node, started again at healing"
    effects = frozenset({Effect.KILLS_NODES})
    proves = "the process id is gone; after healing the node serves under another"
    ended_as = "gone"

    killed = False

    def end(self, controls: Controls, node: str) -> NodeStatus:
        """Ends one node, as this fault does."""
        return controls.kill(node)

    def begin(self, controls: Controls) -> Proof:
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        pids = {node: controls.status(node).pid for node in victims}
        after = run_on_all(lambda node: self.end(controls, node), victims)
        dead = [status for status in after if status.state is NodeState.DEAD]
        self.killed = any(map(was_killed, dead))
        ends = [f"{s.node}: pid {pids[s.node]} {self.ended_as}, exit {s.exit_code}" for s in dead]
        return Proof(acted=bool(dead) and len(dead) == len(victims), text=", ".join(ends))

    def heal(self, controls: Controls) -> str:
        started = run_on_all(controls.start, self.targets)
        return ", ".join(f"{status.node} runs as pid {status.pid}" for status in started)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
