"""Bit rot: one batch in a closed segment of one replica is damaged."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import flag, text
from urteil.chaos.faults.base.fault import (
    ON_THIS_MACHINE,
    WITH_ZOOKEEPER,
    Fault,
    Proof,
    describe_stopped_nodes,
)
from urteil.chaos.log_directories import (
    closed_batches,
    cut_segment,
    flip_bit,
    partitions,
    recovery_points,
    segments,
)
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import NodeState

BIT, CUT = "bit", "cut"


class SegmentDamaged(Fault):
    """Flips a bit of, or cuts, a closed segment of one replica of the partition.

    By default the fault kills the broker first and starts it at healing. After this unclean
    shutdown log recovery must detect the damage, truncate there and fetch the records again.
    Recovery reads only data behind the recovery point (which a truncation moves on Apache Kafka),
    so the fault damages no other data. With `up` the broker keeps running and does not notice: the
    damage stays until `repair` replaces the replica at healing (kill, remove the folder, start).
    """

    name = "segment_damaged"
    about = "flip a bit in, or cut, a closed segment of one replica, with the broker down or up"
    effects = frozenset({Effect.KILLS_NODES, Effect.DAMAGES_FILES})
    on_runtimes = ON_THIS_MACHINE
    proves = "the file, the byte and the offsets of the batch, whose checksum does not match"
    on_targets = WITH_ZOOKEEPER
    sample = ""
    how: str = text(
        "", "the damage; the seed decides by default, with up a bit", choices=(BIT, CUT)
    )
    up: bool = flag("damage the log while the broker runs")
    repair: bool = flag("with up: replace the replica at healing", default=True)

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.how = self.how or (BIT if self.up else arguments.random().choice((BIT, CUT)))
        self.folder = f"{arguments.topic}-{arguments.partition}"

    def injected_effects(self) -> frozenset[Effect]:
        if self.up and not self.repair:
            return frozenset({Effect.DAMAGES_FILES})
        return self.effects

    def begin(self, controls: Controls) -> Proof:
        (node,) = self.targets = tuple(node_selectors.select_nodes(controls, self.arguments)[:1])
        if not self.up:
            controls.kill(node)
        try:
            return self._damage_log(controls, node)
        except NoTarget as reason:
            if self.up:
                raise
            return Proof(acted=False, text=f"{node} was killed, but nothing was damaged: {reason}")

    def _damage_log(self, controls: Controls, node: str) -> Proof:
        """Damage the broker's log of the partition. NoTarget if there is no suitable batch."""
        with controls.disks.open_log_directories(node) as log_dirs:
            folders = [
                partition
                for each in log_dirs
                for partition in partitions(each)
                if partition.name == self.folder
            ]
            if not folders:
                raise NoTarget(f"{node} has no log of {self.folder}")
            text, low, high = self._damage_batch(folders[0])
        harm = {"at_ns": time.monotonic_ns(), "brokers": {node: {self.folder: [low, high]}}}
        running = controls.status(node).state is NodeState.RUNNING
        return Proof(acted=running is self.up, text=f"{node}: {text}", harm=json.dumps(harm))

    def heal(self, controls: Controls) -> str:
        texts = []
        for node in self.targets:
            if self.up and self.repair:
                self._remove_replica(controls, node)
            texts.append(f"{node} runs as pid {controls.start(node).pid}")
        return ", ".join(texts)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)

    def _damage_batch(self, folder: Path) -> tuple[str, int, int | None]:
        """Returns a description, the first damaged offset, and the first intact one behind it;
        None where recovery truncates the rest of the log."""
        random = self.arguments.random()
        recovered_from = 0 if self.up else recovery_points(folder.parent).get(folder.name, 0)
        choices = [
            closed_batch
            for closed_batch in closed_batches(folder)
            if closed_batch[1].base >= recovered_from
        ]
        if not choices:
            behind = f" behind its recovery point, {recovered_from}" if recovered_from else ""
            raise NoTarget(f"{folder.name} has no closed segment with a batch{behind}")
        segment, batch = random.choice(choices)
        offsets = f"the batch of offsets {batch.base} to {batch.last}"
        if self.how == BIT:
            at = flip_bit(segment, batch, random)
            text = f"a bit of byte {at} of {folder.name}/{segment.name} flipped, in {offsets}"
            return text, batch.base, batch.last + 1 if self.up else None
        at = cut_segment(segment, batch, random)
        later = [
            int(segment.stem) for segment in segments(folder) if int(segment.stem) > batch.base
        ]
        text = f"{folder.name}/{segment.name} ends at byte {at}, in {offsets}"
        return text, batch.base, later[0] if self.up else None

    def _remove_replica(self, controls: Controls, node: str) -> None:
        """Kill the broker and remove the log's folder; after its start it fetches all records."""
        if controls.status(node).state is not NodeState.DEAD:
            controls.kill(node)
        with controls.disks.open_log_directories(node) as log_dirs:
            for log_dir in log_dirs:
                shutil.rmtree(log_dir / self.folder, ignore_errors=True)
