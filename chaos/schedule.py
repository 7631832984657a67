"""Turns fault requests of a scenario into a schedule; the same seed returns the same schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from urteil.chaos.anchor_events import LINK_EVENT, LINK_EVENT_FORM, check_event
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import Option
from urteil.chaos.faults import FAULTS
from urteil.chaos.node_selectors import LINK_ENDS, split_cluster
from urteil.chaos.similar_names import suggest

SHIFT_S = 0.8


class FaultRequest(Protocol):
    """A fault as a scenario declares it."""

    @property
    def fault(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def at_s(self) -> float | None: ...
    @property
    def after_acks(self) -> int | None: ...
    @property
    def after_event(self) -> str | None: ...
    @property
    def within_s(self) -> float | None: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def alone(self) -> bool: ...
    @property
    def options(self) -> Mapping[str, Option]: ...
    @property
    def choice(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """One fault of a schedule, with its arguments and its moment.

    It begins `at_s` seconds after the load began; with `after_acks`, `at_s` seconds after that many
    records were acknowledged; with `after_event`, at the first such event after `at_s`. Without an
    event within `within_s` seconds, the fault begins anyway (None: it waits to the end of the
    load). With `alone`, no other fault is active meanwhile.
    """

    fault: str
    arguments: FaultArguments
    at_s: float
    after_acks: int | None = None
    after_event: str | None = None
    within_s: float | None = None
    duration_s: float
    alone: bool = False


def plan_schedule(
    requests: Sequence[FaultRequest], *, seed: int, topic: str, partition: int = 0
) -> list[PlannedFault]:
    """The schedule of `requests` under `seed`, in order of their moments.

    Faults whose times overlap belong together and are shifted together, by up to SHIFT_S either
    way. A request with a `choice` was planned before: its moment stays, and `choice` seeds its
    choices by role.
    ValueError for an unknown fault, option or event, or a fault without a moment.
    """
    ordered = sorted(requests, key=sort_key)
    shifts = _shifts(ordered, Random(f"{seed}/moments"))
    return [
        plan_fault(
            request,
            shift_s=0.0 if request.choice else shift_s,
            choice=request.choice or f"{seed}/{index}/{request.fault}",
            topic=topic,
            partition=partition,
        )
        for index, (request, shift_s) in enumerate(zip(ordered, shifts, strict=True))
    ]


def plan_fault(
    request: FaultRequest, *, shift_s: float, choice: str, topic: str, partition: int = 0
) -> PlannedFault:
    """The planned fault of one request. ValueError for a request that cannot be played."""
    check_fault(request.fault)
    if request.at_s is None and request.after_acks is None and request.after_event is None:
        raise ValueError(f"{request.fault} has no moment: give at_s, after_acks or after_event")
    if request.after_acks is not None and request.after_event is not None:
        raise ValueError(f"{request.fault} has two anchors: give after_acks or after_event")
    if request.after_event is not None:
        check_event(request.after_event)
    options = dict(request.options)
    cluster, target = split_cluster(request.target)
    if target in LINK_ENDS and not (request.after_event or "").startswith(LINK_EVENT):
        raise ValueError(f"{request.fault}: {target} needs an event, after_event={LINK_EVENT_FORM}")
    arguments = FaultArguments(
        target=target,
        cluster=cluster,
        topic=str(options.pop("topic", topic)),
        partition=_number(options.pop("partition", partition)),
        seed=choice,
        options=options,
    )
    FAULTS[request.fault](arguments)
    return PlannedFault(
        fault=request.fault,
        arguments=arguments,
        at_s=round(max(0.0, (request.at_s or 0.0) + shift_s), 3),
        after_acks=request.after_acks,
        after_event=request.after_event,
        within_s=request.within_s,
        duration_s=request.duration_s,
        alone=request.alone,
    )


def _number(partition: Option) -> int:
    try:
        number = int(partition)
    except (ValueError, OverflowError):
        number = -1
    if number < 0:
        raise ValueError(f"partition is {partition!r}: give 0 or more")
    return number


def check_fault(name: str) -> None:
    """Raises ValueError, with similar names, for a name without a fault."""
    if name not in FAULTS:
        raise ValueError(f"no fault named {name!r}; {suggest(name, FAULTS)}")


def sort_key(request: FaultRequest | PlannedFault) -> tuple[int, float]:
    """The sort key of a schedule."""
    return (request.after_acks or 0, request.at_s or 0.0)


def _shifts(requests: Sequence[FaultRequest], random: Random) -> list[float]:
    """The shift of each fault. Overlapping faults share one, so that they keep their order."""
    shifts: list[float] = []
    end_s = anchor = -1.0
    for request in requests:
        begin_s = request.at_s or 0.0
        is_separate = begin_s >= end_s or (request.after_acks or 0) != anchor
        shifts.append(random.uniform(-SHIFT_S, SHIFT_S) if is_separate else shifts[-1])
        end_s = (
            begin_s + request.duration_s
            if is_separate
            else max(end_s, begin_s + request.duration_s)
        )
        anchor = request.after_acks or 0
    return shifts
