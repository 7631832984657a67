"""Events of the cluster to which a fault may be anchored: elections, controllers, ISRs, decisions,
and single requests or answers on links.

A seed does not repeat timing. A fault that is anchored to an event begins at the same point of the
protocol in every run. If the event is a request or an answer, its frame waits in the proxy until
the fault has begun, so a crash happens exactly before it.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.capabilities import TRANSACTION_LISTS, Capability
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.link_rules import ANSWER, REQUEST, LinkRule
from urteil.chaos.observations import LabFailure
from urteil.chaos.similar_names import suggest

POLL_S = 0.05
LINK_POLL_S = 0.02

EVENTS: dict[str, str] = {
    "election": "the partition gets another leader, or any leader after it had none",
    "controller": "another broker becomes controller, or any broker after there was none",
    "isr_shrink": "the partition's ISR loses a member",
    "isr_growth": "the partition's ISR gains a member",
    "decision": "the decision of a transaction is in its coordinator's log, and markers are "
    "missing",
}

NEEDS: dict[str, tuple[Capability, ...]] = {"decision": (TRANSACTION_LISTS,)}
"""Capabilities of brokers without which an event cannot be observed."""


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


LINK_EVENT = "link:"
LINK_EVENT_FORM = "link:API:request:N or link:API:answer:N"
_numbers = itertools.count(1)


def check_event(event: str) -> None:
    """Raises ValueError for an unknown event."""
    if event.startswith(LINK_EVENT):
        link_event_rule(event)
    elif event not in EVENTS:
        hint = suggest(event, EVENTS)
        raise ValueError(f"no event named {event!r}; {hint} (or {LINK_EVENT_FORM})")


def link_event_rule(event: str) -> LinkRule:
    """The rule that holds the frame of a link event. ValueError for another form."""
    fields = event.split(":")
    if len(fields) != 4 or fields[2] not in (REQUEST, ANSWER) or not fields[3].isdigit():
        raise ValueError(f"the event {event!r} is not of the form {LINK_EVENT_FORM}")
    if int(fields[3]) < 1:
        raise ValueError(f"the event {event!r} counts from 1")
    return LinkRule(direction=fields[2], act="hold", api=fields[1], occurrence=int(fields[3]))


@dataclass(slots=True)
class EventWatch:
    """Waits for the next event of one kind in a thread of its own, from its construction on.

    ZooKeeper or a broker may not respond for seconds, which must not block the nemesis. The first
    event sets `occurred`. A change during such a silence counts as soon as the cluster responds
    again. `close`, once the anchored fault has begun, releases the frame of a link event. The
    occurrence of a link event is counted at each node that sends requests; `link` is the link of
    the event.
    """

    event: str
    controls: Controls
    arguments: FaultArguments
    occurred: threading.Event = field(default_factory=threading.Event)
    link: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._watch, name=f"next {self.event}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self.event.startswith(LINK_EVENT):
            self._thread.join()

    def _watch(self) -> None:
        if self.event.startswith(LINK_EVENT):
            self._watch_links()
        else:
            self._watch_cluster()

    def _watch_links(self) -> None:
        net, owner = self.controls.net, f"event_{next(_numbers)}"
        links = [link for link in net.links() if link.dst in self.controls.brokers]
        try:
            net.add_rule(links, link_event_rule(self.event), owner=owner)
            while not self._stop.wait(LINK_POLL_S):
                if hits := net.rule_hits(links, owner=owner):
                    self.link = hits[0].link
                    self.occurred.set()
                    break
            self._stop.wait()
        except LabFailure:
            return  # the event does not come: the fault is recorded as not begun
        finally:
            with contextlib.suppress(LabFailure):
                net.heal(links, owner=owner)

    def _watch_cluster(self) -> None:
        seen, known = False, None
        while not self._stop.is_set():
            try:
                occurred, now = _DETECTORS[self.event](self.controls, self.arguments, known)
            except (LabFailure, ActFailed):
                self._stop.wait(POLL_S)
                continue
            if seen and occurred:
                self.occurred.set()
                return
            seen, known = True, now
            self._stop.wait(POLL_S)
