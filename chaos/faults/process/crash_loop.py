"""A node that is killed again soon after every start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.fault import Fault, Proof, describe_stopped_nodes
from urteil.chaos.faults.base.recurring_steps import RecurringSteps, check_range
from urteil.chaos.observations import NodeState
from urteil.chaos.parallel import run_on_all


class CrashLoop(Fault):
    """Kills the node, starts it after a pause, kills it again after another pause, until healing.
    The seed decides the pauses."""

    name = "crash_loop"
    about = "kill and start a node again and again, at moments that the seed decides"
    effects = frozenset({Effect.KILLS_NODES, Effect.REPEATS})
    sample_s = 4.0
    proves = "process ids that are gone, and the number of restarts"
    lowest_ms: float = number(
        200, "the shortest time between a kill and a start", unit="ms", least=0, most=60_000
    )
    highest_ms: float = number(2000, "the longest such time", unit="ms", least=0, most=60_000)
    loop: RecurringSteps | None = None

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        check_range(self.lowest_ms, self.highest_ms)

    def begin(self, controls: Controls) -> Proof:
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        pids = {node: controls.status(node).pid for node in victims}
        after = run_on_all(controls.kill, victims)
        dead = [status for status in after if status.state is NodeState.DEAD]
        steps = self._steps(controls, victims)
        pauses_s = self.lowest_ms / 1000, self.highest_ms / 1000
        self.loop = RecurringSteps(steps, self.arguments.random(), *pauses_s)
        text = ", ".join(f"{s.node}: pid {pids[s.node]} gone, exit {s.exit_code}" for s in dead)
        return Proof(acted=bool(dead) and len(dead) == len(victims), text=text)

    def heal(self, controls: Controls) -> str:
        try:
            if self.loop is not None:
                self.loop.stop()
        finally:
            started = run_on_all(controls.start, self.targets)
        deaths = 1 + (self.loop.done // 2 if self.loop is not None else 0)
        lives = ", ".join(f"{status.node} runs as pid {status.pid}" for status in started)
        often = "once" if deaths == 1 else f"{deaths} times"
        return f"died {often}; {lives}"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)

    def _steps(self, controls: Controls, nodes: Sequence[str]) -> Iterator[Callable[[], object]]:
        return cycle(
            (lambda: run_on_all(controls.start, nodes), lambda: run_on_all(controls.kill, nodes))
        )
