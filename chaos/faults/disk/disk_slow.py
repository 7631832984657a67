"""A slow disk: each write to a log takes longer, and none fails."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.fault import ON_THIS_MACHINE, STARTED_BY_LAB, Fault, Proof
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until

SEEN_S = 20.0
"""Long enough for a checkpoint: brokers write them every five seconds, also without load."""


class DiskSlow(Fault):
    """Delays each write and sync of active segments and checkpoints by strace, attached to the
    process. Segments that are rolled meanwhile and memory-mapped files (indexes) are not
    delayed."""

    name = "disk_slow"
    about = "delay each write and sync of a broker's logs and checkpoints"
    effects = frozenset({Effect.SLOWS_DISKS})
    on_runtimes = ON_THIS_MACHINE
    proves = "the number of delayed writes, as strace counts them"
    on_targets: ClassVar[tuple[str, ...]] = STARTED_BY_LAB
    delay_ms: int = whole_number(100, "delay of each write", unit="ms", least=1, most=10_000)

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        disks = controls.disks
        run_on_all(lambda node: disks.delay_writes(node, self.delay_ms), self.targets)
        acted = run_on_all(
            lambda node: until(lambda: bool(disks.delayed_writes(node)), deadline_s=SEEN_S),
            self.targets,
        )
        counts = (f"{node}: {disks.delayed_writes(node)}" for node in self.targets)
        text = f"writes delayed by {self.delay_ms} ms so far: {', '.join(counts)}"
        return Proof(acted=bool(acted) and all(acted), text=text)

    def heal(self, controls: Controls) -> str:
        held = run_on_all(controls.disks.stop_delaying_writes, self.targets)
        counts = zip(self.targets, held, strict=True)
        return f"delayed writes in all: {', '.join(f'{node}: {count}' for node, count in counts)}"

    def find_residual_effects(self, controls: Controls) -> str:
        delayed = [node for node in self.targets if controls.disks.delayed_writes(node) is not None]
        return f"writes of {', '.join(delayed)} are still delayed" if delayed else ""
