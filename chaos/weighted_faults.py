"""What a schedule is drawn from: the weighted set, and how it is drawn.

Apart from the drawing itself, so that whoever reads a scenario need not load every fault.
"""

from __future__ import annotations

import msgspec

from urteil.chaos.fault_arguments import Option


class WeightedFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One member of the weighted set: a fault, whom it may hit, with which options.

    A list among `options` is drawn from. `duration_s` is the span of its length, the draw's own
    where it is None. `brings` names events that follow it: others may be anchored there.
    """

    fault: str
    targets: tuple[str, ...] = ("random",)
    weight: float = 1.0
    duration_s: tuple[float, float] | None = None
    alone: bool = False
    options: dict[str, Option | tuple[Option, ...]] = {}
    brings: tuple[str, ...] = ()


class RandomSchedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a schedule is drawn.

    `count` faults, or `per_minute` of load, or as many as fit into the load when neither is given;
    at most `at_once` at any moment. The first begins `first_s` or later, lengths and the pauses
    between one healing and the next begin are drawn from their spans. `anchors` weighs to what a
    fault is tied: `time`, `acks`, or an event that a fault drawn just before brings about (else it
    is time). `voids` names the promises that the scenario lets faults make void; a fault that
    makes another one void is not drawn.
    """

    choices: tuple[WeightedFault, ...]
    count: int | None = None
    per_minute: float | None = None
    at_once: int = 1
    first_s: float = 4.0
    duration_s: tuple[float, float] = (3.0, 8.0)
    pause_s: tuple[float, float] = (3.0, 6.0)
    anchors: dict[str, float] = msgspec.field(default_factory=lambda: {"time": 1.0})
    voids: tuple[str, ...] = ()
