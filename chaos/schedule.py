"""From wishes and a seed to a schedule: the same seed gives the same faults at the same moments."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from urteil.chaos.anchor_events import EVENTS
from urteil.chaos.fault_arguments import FaultArguments, Option
from urteil.chaos.faults import FAULTS

SHIFT_S = 0.8


class FaultRequest(Protocol):
    """What a scenario asks of one fault. A negative `duration_s` makes no sense."""

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
    """One fault of a schedule: what, whom, and when.

    It begins `at_s` seconds after the load began. With `after_acks`, `at_s` seconds after that
    many records were acknowledged. With `after_event`, at the first such event from `at_s` on; when
    none came `within_s` seconds, all the same (None: it waits as long as the load lasts). With
    `alone`, no other fault acts meanwhile.
    """

    fault: str
    arguments: FaultArguments
    at_s: float
    after_acks: int | None = None
    after_event: str | None = None
    within_s: float | None = None
    duration_s: float
    alone: bool = False


def plan(
    wishes: Sequence[FaultRequest], *, seed: int, topic: str, partition: int = 0
) -> list[PlannedFault]:
    """The schedule of `wishes` under `seed`, in order of their moments.

    Faults whose times overlap belong together and are shifted run_on_all, by up to SHIFT_S either
    way. A wish with a `choice` was planned before: its moment stays, and that seeds its choices.
    ValueError for an unknown fault, option or event, or a fault without a moment.
    """
    ordered = sorted(wishes, key=moment)
    shifts = _shifts(ordered, Random(f"{seed}/moments"))
    return [
        planned(
            wish,
            shift_s=0.0 if wish.choice else shift_s,
            choice=wish.choice or f"{seed}/{index}/{wish.fault}",
            topic=topic,
            partition=partition,
        )
        for index, (wish, shift_s) in enumerate(zip(ordered, shifts, strict=True))
    ]


def planned(
    wish: FaultRequest, *, shift_s: float, choice: str, topic: str, partition: int = 0
) -> PlannedFault:
    """`wish` as it will be played. ValueError says what of it cannot be."""
    check_fault(wish.fault)
    if wish.at_s is None and wish.after_acks is None and wish.after_event is None:
        raise ValueError(f"{wish.fault} has no moment: give at_s, after_acks or after_event")
    if wish.after_acks is not None and wish.after_event is not None:
        raise ValueError(f"{wish.fault} has two anchors: give after_acks or after_event")
    if wish.after_event is not None and wish.after_event not in EVENTS:
        raise ValueError(f"no event named {wish.after_event!r}; {_near(wish.after_event, EVENTS)}")
    options = dict(wish.options)
    arguments = FaultArguments(
        target=wish.target,
        topic=str(options.pop("topic", topic)),
        partition=_number(options.pop("partition", partition)),
        seed=choice,
        options=options,
    )
    FAULTS[wish.fault](arguments)
    return PlannedFault(
        fault=wish.fault,
        arguments=arguments,
        at_s=round(max(0.0, (wish.at_s or 0.0) + shift_s), 3),
        after_acks=wish.after_acks,
        after_event=wish.after_event,
        within_s=wish.within_s,
        duration_s=wish.duration_s,
        alone=wish.alone,
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
    """ValueError, with the nearest names, unless there is such a fault."""
    if name not in FAULTS:
        raise ValueError(f"no fault named {name!r}; {_near(name, FAULTS)}")


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"


def moment(wish: FaultRequest | PlannedFault) -> tuple[int, float]:
    """What schedules are in order of."""
    return (wish.after_acks or 0, wish.at_s or 0.0)


def _shifts(wishes: Sequence[FaultRequest], random: Random) -> list[float]:
    """One shift a group of overlapping faults, so that their order within it stays."""
    shifts: list[float] = []
    end_s = anchor = -1.0
    for wish in wishes:
        begin_s = wish.at_s or 0.0
        fresh = begin_s >= end_s or (wish.after_acks or 0) != anchor
        shifts.append(random.uniform(-SHIFT_S, SHIFT_S) if fresh else shifts[-1])
        end_s = begin_s + wish.duration_s if fresh else max(end_s, begin_s + wish.duration_s)
        anchor = wish.after_acks or 0
    return shifts
