"""A schedule drawn from a weighted set: one seed decides what, whom, when and how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from urteil.chaos.anchor_events import EVENTS
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.schedule import PlannedFault, check_fault
from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault

TAIL_S = 4.0
"""Of load after the last healing."""
ARMED_S = 0.5
"""A watch is set that long before the fault begins that shall bring the event about."""
EVENT_WITHIN_S = 10.0
ANCHORS = ("time", "acks", *EVENTS)


def draw(
    asked: RandomSchedule,
    *,
    seed: int,
    load_s: float,
    rate_records_per_s: float,
    topic: str,
    runtime: str = "process",
    target: str = "urteil",
    behind: int = 0,
) -> list[PlannedFault]:
    """The schedule of `asked` under `seed`: the same arguments give the same schedule. Its faults
    are numbered on from those that it comes `behind`.

    ValueError for what cannot be drawn from: an unknown fault or option, a span that ends before it
    begins, or nothing that can act there without making void what the scenario promises.
    """
    _check(asked)
    random = Random(f"{seed}/draw")
    able = [one for one in asked.choices if _fits(one, asked, topic, runtime, target)]
    if not able:
        raise ValueError("nothing can be drawn: every fault is unfit here, or voids a promise")
    free = [asked.first_s + random.uniform(0, asked.pause_s[0]) for _ in range(asked.at_once)]
    count = _count(asked, load_s)
    drawn: list[PlannedFault] = []
    before: tuple[WeightedFault, PlannedFault] | None = None
    while count is None or len(drawn) < count:
        lane = free.index(min(free))
        choice = random.choices(able, [one.weight for one in able])[0]
        duration_s = random.uniform(*(choice.duration_s or asked.duration_s))
        if choice.alone:
            free = [max(free)] * asked.at_once
        if count is None and drawn and free[lane] + duration_s > load_s - TAIL_S:
            break
        arguments = _arguments(
            choice, random, f"{seed}/{behind + len(drawn)}/{choice.fault}", topic
        )
        anchor = random.choices(list(asked.anchors), list(asked.anchors.values()))[0]
        at_s = free[lane]
        one = _anchored(anchor, at_s, before, rate_records_per_s, choice, arguments, duration_s)
        drawn.append(one)
        before = (choice, one)
        until_s = at_s + duration_s + random.uniform(*asked.pause_s)
        free = [until_s if choice.alone or n == lane else one for n, one in enumerate(free)]
    return drawn


def _anchored(
    anchor: str,
    at_s: float,
    before: tuple[WeightedFault, PlannedFault] | None,
    rate: float,
    choice: WeightedFault,
    arguments: FaultArguments,
    duration_s: float,
) -> PlannedFault:
    """The fault at `at_s`, or where records or an event stand for that moment."""
    plain = PlannedFault(
        fault=choice.fault,
        arguments=arguments,
        at_s=round(at_s, 3),
        duration_s=round(duration_s, 3),
        alone=choice.alone,
    )
    if anchor == "acks" and rate * at_s >= 1:
        return replace(plain, after_acks=int(rate * at_s), at_s=0.0)
    if anchor in EVENTS and before is not None and anchor in before[0].brings:
        cause = before[1]
        lasts = cause.after_acks is None and cause.at_s + cause.duration_s > at_s
        if lasts and cause.after_event is None:
            armed_s = max(0.0, round(cause.at_s - ARMED_S, 3))
            return replace(plain, after_event=anchor, at_s=armed_s, within_s=EVENT_WITHIN_S)
    return plain


def _arguments(choice: WeightedFault, random: Random, seed: str, topic: str) -> FaultArguments:
    options = {
        name: random.choice(value) if isinstance(value, tuple) else value
        for name, value in sorted(choice.options.items())
    }
    partition = int(options.pop("partition", 0))
    return FaultArguments(
        target=random.choice(choice.targets),
        topic=str(options.pop("topic", topic)),
        partition=partition,
        seed=seed,
        options=options,
    )


def _count(asked: RandomSchedule, load_s: float) -> int | None:
    if asked.count is not None:
        return asked.count
    if asked.per_minute is None:
        return None
    return max(1, round(asked.per_minute * load_s / 60))


def _fits(
    choice: WeightedFault, asked: RandomSchedule, topic: str, runtime: str, target: str
) -> bool:
    """Whether it can act there, and voids nothing but what the scenario says."""
    fault = FAULTS[choice.fault]
    if fault.unsupported_reason(runtime=runtime, target=target):
        return False
    return all(
        set(fault(arguments).voided_promises()) <= set(asked.voids)
        for arguments in _sample_arguments(choice, topic)
    )


def _sample_arguments(choice: WeightedFault, topic: str) -> Sequence[FaultArguments]:
    """Every target with each option's first and last: what `voids` may depend on."""
    ends = [0, -1]
    return [
        FaultArguments(
            target=where,
            topic=topic,
            options={
                name: value[end] if isinstance(value, tuple) else value
                for name, value in choice.options.items()
                if name not in ("topic", "partition")
            },
        )
        for where in choice.targets
        for end in ends
    ]


def _check(asked: RandomSchedule) -> None:
    for one in asked.choices:
        check_fault(one.fault)
        if not one.weight > 0 or not one.targets:
            raise ValueError(f"draw: {one.fault} needs a weight above 0 and a target at least")
    spans = [
        asked.duration_s,
        asked.pause_s,
        *(c.duration_s for c in asked.choices if c.duration_s),
    ]
    for low, high in spans:
        if not 0 <= low <= high:
            raise ValueError(f"draw: {low} to {high} is no span of seconds")
    if asked.at_once < 1:
        raise ValueError(f"draw: at_once is {asked.at_once}, at least 1 is asked for")
    strange = sorted(set(asked.anchors) - set(ANCHORS))
    if strange or not any(weight > 0 for weight in asked.anchors.values()):
        raise ValueError(f"draw: anchors are {', '.join(ANCHORS)}, not {', '.join(strange) or '-'}")
