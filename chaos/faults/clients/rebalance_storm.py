"""Members join and leave a group without pause, so that it rebalances most of the time."""

from __future__ import annotations

import threading

from urteil.chaos.controls import ClientControls, Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.fault import Fault, Proof
from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until

JOINED_DEADLINE_S = 20.0
END_DEADLINE_S = 40.0
POLL_S = 0.05


class RebalanceStorm(Fault):
    """A member joins, the previous one leaves, and so on until healing."""

    name = "rebalance_storm"
    listed_after = "ring"
    about = "let group members join and leave in turn until healing"
    effects = frozenset({Effect.CHANGES_MEMBERS})
    proves = "the first new member got partitions; the number of members that joined and left"
    selectors = "the workload's group; the target is ignored"
    every_ms: float = number(500, "time from a departure to the next join", unit="ms", least=0)
    sample = ""

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._present: list[str] = []
        self._joined = 0
        self._failure = ""

    def begin(self, controls: Controls) -> Proof:
        members = controls.clients
        self.targets = ("group",)
        self._present = [members.join()]
        self._joined = 1
        assigned = self._await_assignment(members, self._present[0])
        self._thread = threading.Thread(target=self._storm, args=(members,), daemon=True)
        self._thread.start()
        result = "got partitions" if assigned else "got no partition"
        return Proof(acted=assigned, text=f"{self._present[0]} joined and {result}")

    def _storm(self, members: ClientControls) -> None:
        try:
            while not self._stop.wait(self.every_ms / 1000):
                self._present.append(members.join())
                self._joined += 1
                self._await_assignment(members, self._present[-1])
                members.leave(self._present.pop(0))
        except Exception as failure:
            self._failure = f"{type(failure).__name__}: {failure}"

    def heal(self, controls: Controls) -> str:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(END_DEADLINE_S)
        if self._failure or (self._thread is not None and self._thread.is_alive()):
            raise LabFailure(f"the members' thread did not end: {self._failure or 'it hangs'}")
        while self._present:
            controls.clients.leave(self._present.pop())
        return f"{self._joined} joined and left"

    def find_residual_effects(self, controls: Controls) -> str:
        return ""

    def _await_assignment(self, members: ClientControls, name: str) -> bool:
        """Wait until the member has partitions. False at healing or on the deadline."""
        return until(
            lambda: bool(members.assignments(name)),
            deadline_s=JOINED_DEADLINE_S,
            poll_s=POLL_S,
            stop=self._stop,
        )
