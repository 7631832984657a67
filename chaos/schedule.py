"""From wishes and a seed to a schedule: the same seed gives the same faults at the same moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from urteil.chaos.aim import Aim, Option
from urteil.chaos.faults import FAULTS

SHIFT_S = 0.8


class Wish(Protocol):
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
    def duration_s(self) -> float: ...
    @property
    def options(self) -> Mapping[str, Option]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One fault of a schedule: what, whom, and when.

    It begins `at_s` seconds after the load began, or as soon as `after_acks` records were
    acknowledged; `at_s` is then how long after that moment.
    """

    fault: str
    aim: Aim
    at_s: float
    after_acks: int | None
    duration_s: float


def plan(wishes: Sequence[Wish], *, seed: int, topic: str, partition: int = 0) -> list[Planned]:
    """The schedule of `wishes` under `seed`, in order of their moments.

    Faults whose times overlap belong together and are shifted together, by up to SHIFT_S either
    way. ValueError for an unknown fault or option, or a fault without a moment.
    """
    ordered = sorted(wishes, key=lambda wish: (wish.after_acks or 0, wish.at_s or 0.0))
    shifts = _shifts(ordered, Random(f"{seed}/moments"))
    planned = []
    for index, (wish, shift_s) in enumerate(zip(ordered, shifts, strict=True)):
        options = dict(wish.options)
        aim = Aim(
            target=wish.target,
            topic=str(options.pop("topic", topic)),
            partition=int(options.pop("partition", partition)),
            seed=f"{seed}/{index}/{wish.fault}",
            options=options,
        )
        planned.append(_planned(wish, aim, shift_s))
    return planned


def _planned(wish: Wish, aim: Aim, shift_s: float) -> Planned:
    if wish.fault not in FAULTS:
        raise ValueError(f"no fault named {wish.fault!r}; known: {', '.join(FAULTS)}")
    if wish.at_s is None and wish.after_acks is None:
        raise ValueError(f"{wish.fault} has no moment: give at_s or after_acks")
    FAULTS[wish.fault](aim)
    return Planned(
        fault=wish.fault,
        aim=aim,
        at_s=max(0.0, (wish.at_s or 0.0) + shift_s),
        after_acks=wish.after_acks,
        duration_s=wish.duration_s,
    )


def _shifts(wishes: Sequence[Wish], random: Random) -> list[float]:
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
