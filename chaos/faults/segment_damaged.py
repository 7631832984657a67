"""Bits that rot: one batch in a closed segment of one replica is not what was written."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.fault import KAFKA, MIX, URTEIL, Fault, Proof, describe_stopped_nodes
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
    """Flip a bit of, or cut, a closed segment of one replica of the partition.

    By default the broker is killed before and started at healing: it did not shut down cleanly, so
    recovery must find it, cut there and fetch it again. That is promised of what lies behind the
    recovery point (which a truncation moves on Apache Kafka), so nothing else is damaged. With
    `up` it keeps running and nobody is told: the damage stays until its replica is made anew, which
    `repair` does at healing (kill, the log's folder removed, start).
    """

    name = "segment_damaged"
    about = "a bit flipped in, or a cut of, a closed segment of one replica, the broker down or up"
    family = "disk"
    proves = "the file, the byte and the offsets of the batch; the checksum does not match"
    on_targets = (URTEIL, KAFKA, MIX)
    sample = ""
    options: ClassVar[dict[str, str]] = {
        "how": "bit or cut (default by the seed; with up a bit)",
        "up": "while the broker runs (default false)",
        "repair": "with up: make the replica anew at healing (default true)",
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.up = arguments.flag("up")
        how = str(arguments.options.get("how", ""))
        if how not in ("", BIT, CUT):
            raise ValueError(f"how={how} is neither {BIT} nor {CUT}")
        self.how = how or (BIT if self.up else arguments.random().choice((BIT, CUT)))
        self.folder = f"{arguments.topic}-{arguments.partition}"

    def begin(self, controls: Controls) -> Proof:
        (node,) = self.targets = tuple(node_selectors.select_nodes(controls, self.arguments)[:1])
        if not self.up:
            controls.kill(node)
        try:
            return self._hurt(controls, node)
        except NoTarget as reason:
            if self.up:
                raise
            return Proof(acted=False, text=f"{node} was killed in vain: {reason}")

    def _hurt(self, controls: Controls, node: str) -> Proof:
        """Damage its log. NoTarget where it has none that can be."""
        with controls.disks.open_log_directories(node) as log_dirs:
            found = [
                one for each in log_dirs for one in partitions(each) if one.name == self.folder
            ]
            if not found:
                raise NoTarget(f"{node} has no log of {self.folder}")
            text, low, high = self._damage(found[0])
        harm = {"at_ns": time.monotonic_ns(), "brokers": {node: {self.folder: [low, high]}}}
        running = controls.status(node).state is NodeState.RUNNING
        return Proof(acted=running is self.up, text=f"{node}: {text}", harm=json.dumps(harm))

    def heal(self, controls: Controls) -> str:
        told = []
        for node in self.targets:
            if self.up and self.arguments.flag("repair", True):
                self._forget(controls, node)
            told.append(f"{node} runs as pid {controls.start(node).pid}")
        return ", ".join(told)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)

    def _damage(self, folder: Path) -> tuple[str, int, int | None]:
        """What was done, and the offsets that it concerns; recovery cuts from there to the end."""
        random = self.arguments.random()
        looked_at = 0 if self.up else recovery_points(folder.parent).get(folder.name, 0)
        choices = [one for one in closed_batches(folder) if one[1].base >= looked_at]
        if not choices:
            behind = f" behind its recovery point, {looked_at}" if looked_at else ""
            raise NoTarget(f"{folder.name} has no closed segment with a batch{behind}")
        segment, batch = random.choice(choices)
        offsets = f"the batch of offsets {batch.base} to {batch.last}"
        if self.how == BIT:
            at = flip_bit(segment, batch, random)
            text = f"a bit of byte {at} of {folder.name}/{segment.name} flipped, in {offsets}"
            return text, batch.base, batch.last + 1 if self.up else None
        at = cut_segment(segment, batch, random)
        later = [int(one.stem) for one in segments(folder) if int(one.stem) > batch.base]
        text = f"{folder.name}/{segment.name} ends at byte {at}, in {offsets}"
        return text, batch.base, later[0] if self.up else None

    def _forget(self, controls: Controls, node: str) -> None:
        """The log's folder goes: the broker fetches it from the leader when it is back."""
        if controls.status(node).state is not NodeState.DEAD:
            controls.kill(node)
        with controls.disks.open_log_directories(node) as log_dirs:
            for log_dir in log_dirs:
                shutil.rmtree(log_dir / self.folder, ignore_errors=True)
