"""A power cut: processes die, and their disks lose all data that was not flushed."""

from __future__ import annotations

import json
import time
from random import Random

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.fault import (
    STARTED_BY_LAB,
    Fault,
    Proof,
    describe_stopped_nodes,
)
from urteil.chaos.flushed_files import FlushedFiles
from urteil.chaos.log_directories import (
    LogLoss,
    cut_power,
    lose_entries,
    lose_leader_epochs,
    partitions,
    recovery_points,
    replica_logs,
)
from urteil.chaos.observations import NodeState
from urteil.chaos.parallel import run_on_all


class PowerCut(Fault):
    """Kills nodes in parallel, then cuts or zeroes the unflushed end of every log.

    If the lab records the broker's calls (`ClusterSpec.records_flushes`), they show what was
    flushed. Then a cut may destroy data that the broker declared as flushed by its recovery point,
    and their loss is not excused. Files may be lost, too: if a broker created, renamed or removed a
    file in the last seconds and did not flush the directory, the change is undone. Without the
    record, the broker's recovery points count, and only the active segment is cut.

    The seed decides the position. The first cut segment's indexes and younger producer snapshots
    are damaged alike, with `snapshots` also the one at the segment's begin: brokers write it when
    they roll the log, and releases from 0.11 to 2.6 never flush it, though they flush the closed
    segment. With `epochs` each log loses its `leader-epoch-checkpoint`, however old: brokers write
    it under another name and rename it, and releases before 3.0 never flush the directory
    (KAFKA-3968). KRaft's metadata log has no recovery point, since a controller flushes it before
    it answers: it loses data by the record alone, and no entries.
    """

    name = "power_cut"
    about = "kill a node, then cut or zero the unflushed end of each of its logs"
    effects = frozenset({Effect.KILLS_NODES, Effect.LOSES_WRITES})
    proves = "process ids that are gone; the number of bytes and logs lost, and the offsets"
    on_targets = STARTED_BY_LAB
    snapshots: bool = flag(
        "damage the producer snapshots of the last rolls, which were not flushed"
    )
    epochs: bool = flag("remove the files of leader epochs, whose rename was not flushed")

    def begin(self, controls: Controls) -> Proof:
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        after = run_on_all(controls.kill, victims)
        at_ns = time.monotonic_ns()
        dead = [status.node for status in after if status.state is NodeState.DEAD]
        flushed = {node: controls.disks.flushed_files(node) for node in dead}
        cuts = run_on_all(
            lambda node: self._lose_unflushed(controls, node, flushed[node], at_ns), dead
        )
        losses = dict(zip(dead, cuts, strict=True))
        text = "; ".join(map(_sentence, dead, cuts, flushed.values()))
        acted = bool(dead) and len(dead) == len(victims)
        if self.epochs:
            files = sum(run_on_all(lambda n: self._lose_epochs(controls, n), dead))
            text, acted = f"{text}; {files} files of leader epochs removed", acted and files > 0
        return Proof(acted=acted, text=text, harm=_harm_json(at_ns, losses))

    def voided_promises(self) -> frozenset[str]:
        is_minority = self.arguments.target in (
            "leader",
            "follower",
            "controller",
            "quorum_leader",
            "quorum_follower",
            "random",
            "minority",
        )
        return frozenset() if is_minority else frozenset({"durability"})

    def heal(self, controls: Controls) -> str:
        started = run_on_all(controls.start, self.targets)
        return ", ".join(f"{status.node} runs as pid {status.pid}" for status in started)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)

    def _lose_unflushed(
        self, controls: Controls, node: str, flushed: FlushedFiles | None, at_ns: int
    ) -> list[LogLoss]:
        cuts: list[LogLoss] = []
        with controls.disks.open_log_directories(node) as log_dirs:
            for log_dir in log_dirs:
                points = recovery_points(log_dir)
                if flushed is not None:
                    cuts += lose_entries(log_dir, flushed, at_ns)
                for folder in replica_logs(log_dir) if flushed is None else partitions(log_dir):
                    random = Random(f"{self.arguments.seed}/{node}/{folder.name}")
                    cut = cut_power(
                        folder,
                        points.get(folder.name, 0),
                        random,
                        flushed=flushed,
                        snapshots=self.snapshots,
                    )
                    cuts += [] if cut is None else [cut]
        return cuts

    def _lose_epochs(self, controls: Controls, node: str) -> int:
        with controls.disks.open_log_directories(node) as log_dirs:
            folders = [folder for log_dir in log_dirs for folder in replica_logs(log_dir)]
            return sum(map(lose_leader_epochs, folders))


def _sentence(node: str, cuts: list[LogLoss], flushed: FlushedFiles | None) -> str:
    source = "its recovery points" if flushed is None else "the record of its flushes"
    lost, logs = sum(cut.lost_bytes for cut in cuts), len({cut.folder for cut in cuts})
    shown = ", ".join(map(str, cuts[:3])) or "everything had been flushed"
    more = f" and {len(cuts) - 3} more" if len(cuts) > 3 else ""
    text = f"{node} killed, {lost} unflushed bytes of {logs} logs lost by {source}"
    return f"{text}: {shown}{more}"


def _harm_json(at_ns: int, losses: dict[str, list[LogLoss]]) -> str:
    brokers = {
        node: {
            folder: [min(cut.promised for cut in cuts if cut.folder == folder), None]
            for folder in {cut.folder: None for cut in cuts}
        }
        for node, cuts in losses.items()
    }
    return json.dumps({"at_ns": at_ns, "brokers": brokers})
