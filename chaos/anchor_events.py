"""Events of the cluster to which a fault may be anchored: elections, controllers, ISRs, decisions.

A seed does not repeat timing. A fault that is anchored to an event begins at the same point of the
protocol in every run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.observations import LabFailure

POLL_S = 0.05

EVENTS: dict[str, str] = {
    "election": "the partition gets another leader, or any leader after it had none",
    "controller": "another broker becomes controller, or any broker after there was none",
    "isr_shrink": "the partition's ISR loses a member",
    "isr_growth": "the partition's ISR gains a member",
    "decision": "the decision of a transaction is in its coordinator's log, and markers are "
    "missing",
}


def _election(
    controls: Controls, arguments: FaultArguments, before: Hashable
) -> tuple[bool, Hashable]:
    view = controls.partition(arguments.topic, arguments.partition)
    leader = None if view is None else view.leader
    return leader is not None and leader != before, leader


def _controller(
    controls: Controls, _arguments: FaultArguments, before: Hashable
) -> tuple[bool, Hashable]:
    node = controls.controller()
    return node is not None and node != before, node


def _isr_shrink(
    controls: Controls, arguments: FaultArguments, before: Hashable
) -> tuple[bool, Hashable]:
    view = controls.partition(arguments.topic, arguments.partition)
    isr = frozenset[str]() if view is None else frozenset(view.isr)
    lost = isinstance(before, frozenset) and bool(isr) and bool(before - isr)
    return lost, isr or before


def _isr_growth(
    controls: Controls, arguments: FaultArguments, before: Hashable
) -> tuple[bool, Hashable]:
    view = controls.partition(arguments.topic, arguments.partition)
    isr = frozenset[str]() if view is None else frozenset(view.isr)
    return isinstance(before, frozenset) and bool(isr - before), isr or before


def _decision(
    controls: Controls, _arguments: FaultArguments, _before: Hashable
) -> tuple[bool, Hashable]:
    return bool(controls.admin.decided_transactions()), None


_DETECTORS: dict[str, Callable[[Controls, FaultArguments, Hashable], tuple[bool, Hashable]]] = {
    "election": _election,
    "controller": _controller,
    "isr_shrink": _isr_shrink,
    "isr_growth": _isr_growth,
    "decision": _decision,
}


@dataclass(slots=True)
class EventWatch:
    """Waits for the next event of one kind in a thread of its own, from its construction on.

    ZooKeeper or a broker may not respond for seconds, which must not block the nemesis. `came` is
    set once, by the first event. A change during such a silence counts as soon as the cluster
    responds again.
    """

    event: str
    controls: Controls
    arguments: FaultArguments
    came: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._watch, name=f"next {self.event}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()

    def _watch(self) -> None:
        seen, known = False, None
        while not self._stop.is_set():
            try:
                came, now = _DETECTORS[self.event](self.controls, self.arguments, known)
            except (LabFailure, ActFailed):
                self._stop.wait(POLL_S)
                continue
            if seen and came:
                self.came.set()
                return
            seen, known = True, now
            self._stop.wait(POLL_S)
