"""Power cuts: processes die, and what their machines had not flushed is gone from their disks."""

from __future__ import annotations

import json
import time
from random import Random

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import (
    KAFKA,
    MIX,
    URTEIL,
    Fault,
    Proof,
    describe_stopped_nodes,
    run_on_all,
)
from urteil.chaos.log_directories import Cut, cut_power, partitions, recovery_points
from urteil.chaos.observations import NodeState


class PowerCut(Fault):
    """Kill brokers at once; then cut or zero the end of every log that was not flushed.

    The place is drawn from the seed and lies behind the recovery point, in the active segment;
    its indexes and younger snapshots of producers are hurt alike.
    """

    name = "power_cut"
    about = "SIGKILL, then what was not flushed is cut or zeroed at a seeded place of every log"
    family = "disk"
    proves = "process ids that are gone; how many bytes of how many logs, and from which offset"
    on_targets = (URTEIL, KAFKA, MIX)

    def begin(self, controls: Controls) -> Proof:
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        after = run_on_all(controls.kill, victims)
        at_ns = time.monotonic_ns()
        dead = [status.node for status in after if status.state is NodeState.DEAD]
        taken = dict(zip(dead, run_on_all(lambda n: self._take(controls, n), dead), strict=True))
        text = "; ".join(_sentence(node, cuts) for node, cuts in taken.items())
        acted = bool(dead) and len(dead) == len(victims)
        return Proof(acted=acted, text=text, harm=_harm(at_ns, taken))

    def voided_promises(self) -> frozenset[str]:
        alone = self.arguments.target in ("leader", "follower", "controller", "random", "minority")
        return frozenset() if alone else frozenset({"durability"})

    def heal(self, controls: Controls) -> str:
        started = run_on_all(controls.start, self.targets)
        return ", ".join(f"{status.node} runs as pid {status.pid}" for status in started)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)

    def _take(self, controls: Controls, node: str) -> list[Cut]:
        cuts: list[Cut] = []
        with controls.disks.open_log_directories(node) as log_dirs:
            for log_dir in log_dirs:
                points = recovery_points(log_dir)
                for folder in partitions(log_dir):
                    random = Random(f"{self.arguments.seed}/{node}/{folder.name}")
                    cut = cut_power(folder, points.get(folder.name, 0), random)
                    cuts += [] if cut is None else [cut]
        return cuts


def _sentence(node: str, cuts: list[Cut]) -> str:
    lost = sum(cut.lost_bytes for cut in cuts)
    told = ", ".join(map(str, cuts[:3])) or "everything had been flushed"
    more = f" and {len(cuts) - 3} logs more" if len(cuts) > 3 else ""
    return f"{node} killed, {lost} unflushed bytes of {len(cuts)} logs gone: {told}{more}"


def _harm(at_ns: int, taken: dict[str, list[Cut]]) -> str:
    brokers = {node: {cut.folder: [cut.kept, None] for cut in cuts} for node, cuts in taken.items()}
    return json.dumps({"at_ns": at_ns, "brokers": brokers})
