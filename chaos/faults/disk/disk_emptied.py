"""A broker's disk is replaced by an empty one."""

from __future__ import annotations

import json
import time

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import (
    WITH_ZOOKEEPER,
    Fault,
    Proof,
    describe_stopped_nodes,
)
from urteil.chaos.log_directories import delete_content
from urteil.chaos.observations import NodeState
from urteil.chaos.parallel import run_on_all


class DiskEmptied(Fault):
    """Kills brokers and empties their log directories; healing starts them without any log. With a
    duration of 0 they restart at once (KAFKA-14139: the controller counts a replica as in sync
    although it lost its log)."""

    name = "disk_emptied"
    about = "kill a broker and empty its disks; start it at healing"
    effects = frozenset({Effect.KILLS_NODES, Effect.EMPTIES_DISKS})
    proves = "process ids that are gone, empty folders, and the number of lost logs"
    on_targets = WITH_ZOOKEEPER

    def begin(self, controls: Controls) -> Proof:
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        after = run_on_all(controls.kill, victims)
        at_ns = time.monotonic_ns()
        dead = [status.node for status in after if status.state is NodeState.DEAD]
        lost = {node: self._empty(controls, node) for node in dead}
        harm = {node: {name: [0, None] for name in logs} for node, logs in lost.items()}
        text = "; ".join(f"{node} killed, {len(logs)} logs lost" for node, logs in lost.items())
        return Proof(
            acted=bool(dead) and len(dead) == len(victims) and all(lost.values()),
            text=text,
            harm=json.dumps({"at_ns": at_ns, "brokers": harm}),
        )

    def voided_promises(self) -> frozenset[str]:
        """A single broker may hold the last in-sync replica."""
        return frozenset({"durability"})

    def heal(self, controls: Controls) -> str:
        started = run_on_all(controls.start, self.targets)
        return ", ".join(f"{status.node} runs as pid {status.pid}" for status in started)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)

    def _empty(self, controls: Controls, node: str) -> list[str]:
        with controls.disks.open_log_directories(node) as log_dirs:
            return [name for log_dir in log_dirs for name in delete_content(log_dir)]
