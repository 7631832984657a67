"""A slow disk: every write to a log takes longer, and nothing fails."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.fault import (
    KAFKA,
    MIX,
    URTEIL,
    Fault,
    Proof,
    run_on_all,
    until,
)

DELAY_MS = 100
MOST_MS = 10_000
SEEN_S = 20.0
"""Brokers write their checkpoints every five seconds, also when nobody sends."""


class DiskSlow(Fault):
    """Writes and syncs of the active segments and of the checkpoints are held back, one by one
    (strace attached to the process). Segments that are rolled meanwhile are not, nor is what is
    written by memory maps, as indexes are."""

    name = "disk_slow"
    about = "let every write and sync of a broker's logs and checkpoints take longer"
    family = "disk"
    proves = "writes that were held back, counted by who holds them"
    on_targets: ClassVar[tuple[str, ...]] = (URTEIL, KAFKA, MIX)
    options: ClassVar[dict[str, str]] = {
        "delay_ms": f"how much longer each one takes, 1 to {MOST_MS} (default {DELAY_MS})"
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.delay_ms = round(arguments.number("delay_ms", DELAY_MS, least=1, most=MOST_MS))

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        disks = controls.disks
        run_on_all(lambda node: disks.delay_writes(node, self.delay_ms), self.targets)
        acted = run_on_all(
            lambda node: until(lambda: bool(disks.delayed_writes(node)), deadline_s=SEEN_S),
            self.targets,
        )
        told = (f"{node}: {disks.delayed_writes(node)}" for node in self.targets)
        text = f"writes held back for {self.delay_ms} ms, by now: {', '.join(told)}"
        return Proof(acted=bool(acted) and all(acted), text=text)

    def heal(self, controls: Controls) -> str:
        held = run_on_all(controls.disks.stop_delaying_writes, self.targets)
        told = zip(self.targets, held, strict=True)
        return f"writes held back in all: {', '.join(f'{node}: {count}' for node, count in told)}"

    def find_residual_effects(self, controls: Controls) -> str:
        held = [node for node in self.targets if controls.disks.delayed_writes(node) is not None]
        return f"writes of {', '.join(held)} are held back" if held else ""
