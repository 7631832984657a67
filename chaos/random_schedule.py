"""Draws a schedule from weighted faults: one seed decides faults, targets, moments, durations."""

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
"""Seconds of load after the last healing."""
ARMED_S = 0.5
"""An anchored fault starts to watch this long before the fault that causes its event."""
EVENT_WITHIN_S = 10.0
PLACE_OPTIONS = ("topic", "partition")
"""Options that become fields of `FaultArguments`."""
ANCHORS = ("time", "acks", *EVENTS)


def draw_schedule(
    request: RandomSchedule,
    *,
    seed: int,
    load_s: float,
    rate_records_per_s: float,
    topic: str,
    runtime: str = "process",
    target: str = "urteil",
    behind: int = 0,
) -> list[PlannedFault]:
    """Draw a schedule. The same arguments return the same schedule.

    `behind` is the number of faults before the drawn ones, which continue their numbering.
    ValueError for an unknown fault or option, for a range that ends before it begins, and if no
    fault can act there without voiding a promise of the scenario.
    """
    _check(request)
    random = Random(f"{seed}/draw")
    candidates = [
        choice for choice in request.choices if _may_act(choice, request, topic, runtime, target)
    ]
    if not candidates:
        raise ValueError("no fault can be drawn: each is unsupported here or voids a promise")
    free_at_s = [
        request.first_s + random.uniform(0, request.pause_s[0]) for _ in range(request.at_once)
    ]
    count = _count(request, load_s)
    drawn: list[PlannedFault] = []
    before: tuple[WeightedFault, PlannedFault] | None = None
    while count is None or len(drawn) < count:
        lane = free_at_s.index(min(free_at_s))
        choice = random.choices(candidates, [candidate.weight for candidate in candidates])[0]
        duration_s = random.uniform(*(choice.duration_s or request.duration_s))
        if choice.alone:
            free_at_s = [max(free_at_s)] * request.at_once
        if count is None and drawn and free_at_s[lane] + duration_s > load_s - TAIL_S:
            break
        arguments = _arguments(
            choice, random, f"{seed}/{behind + len(drawn)}/{choice.fault}", topic
        )
        anchor = random.choices(list(request.anchors), list(request.anchors.values()))[0]
        at_s = free_at_s[lane]
        planned_fault = _place_fault(
            anchor, at_s, before, rate_records_per_s, choice, arguments, duration_s
        )
        drawn.append(planned_fault)
        before = (choice, planned_fault)
        until_s = at_s + duration_s + random.uniform(*request.pause_s)
        free_at_s = [
            until_s if choice.alone or n == lane else end_s for n, end_s in enumerate(free_at_s)
        ]
    return drawn


def _place_fault(
    anchor: str,
    at_s: float,
    before: tuple[WeightedFault, PlannedFault] | None,
    rate: float,
    choice: WeightedFault,
    arguments: FaultArguments,
    duration_s: float,
) -> PlannedFault:
    """The fault at `at_s`, or anchored to acknowledgements or to an event."""
    timed = PlannedFault(
        fault=choice.fault,
        arguments=arguments,
        at_s=round(at_s, 3),
        duration_s=round(duration_s, 3),
        alone=choice.alone,
    )
    if anchor == "acks" and rate * at_s >= 1:
        return replace(timed, after_acks=int(rate * at_s), at_s=0.0)
    if anchor in EVENTS and before is not None and anchor in before[0].brings:
        cause = before[1]
        lasts = cause.after_acks is None and cause.at_s + cause.duration_s > at_s
        if lasts and cause.after_event is None:
            armed_s = max(0.0, round(cause.at_s - ARMED_S, 3))
            return replace(timed, after_event=anchor, at_s=armed_s, within_s=EVENT_WITHIN_S)
    return timed


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


def _count(request: RandomSchedule, load_s: float) -> int | None:
    if request.count is not None:
        return request.count
    if request.per_minute is None:
        return None
    return max(1, round(request.per_minute * load_s / 60))


def _may_act(
    choice: WeightedFault, request: RandomSchedule, topic: str, runtime: str, target: str
) -> bool:
    """Whether the fault can act there and voids only promises that the scenario lists."""
    fault = FAULTS[choice.fault]
    for selector in choice.targets:
        if fault.unsupported_reason(
            runtime=runtime, target=target, selector=selector, options=choice.options
        ):
            return False
    return all(
        set(fault(arguments).voided_promises()) <= set(request.voids)
        for arguments in sample_arguments(choice, topic)
    )


def sample_arguments(choice: WeightedFault, topic: str) -> Sequence[FaultArguments]:
    """Every target with the first and the last value of each option, since `voided_promises` may
    depend on them."""
    positions = [0, -1]
    return [
        FaultArguments(
            target=where,
            topic=topic,
            options={
                name: value[position] if isinstance(value, tuple) else value
                for name, value in choice.options.items()
                if name not in PLACE_OPTIONS
            },
        )
        for where in choice.targets
        for position in positions
    ]


def _check(request: RandomSchedule) -> None:
    for choice in request.choices:
        check_fault(choice.fault)
        if not choice.weight > 0 or not choice.targets:
            raise ValueError(f"draw: {choice.fault} needs a weight above 0 and at least one target")
        for name, drawn in choice.options.items():
            if name not in PLACE_OPTIONS:
                for value in drawn if isinstance(drawn, tuple) else (drawn,):
                    FAULTS[choice.fault].read_options({name: value})
    ranges = [
        request.duration_s,
        request.pause_s,
        *(c.duration_s for c in request.choices if c.duration_s),
    ]
    for low, high in ranges:
        if not 0 <= low <= high:
            raise ValueError(
                f"draw: {low} to {high} is not a range of seconds: give 0 <= low <= high"
            )
    if request.at_once < 1:
        raise ValueError(f"draw: at_once is {request.at_once}: give 1 or more")
    unknown = sorted(set(request.anchors) - set(ANCHORS))
    if unknown or not any(weight > 0 for weight in request.anchors.values()):
        raise ValueError(f"draw: anchors are {', '.join(ANCHORS)}, not {', '.join(unknown) or '-'}")
