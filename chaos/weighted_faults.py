"""The declaration of a random schedule in a scenario: weighted faults, and how to draw from them.

Drawing is a module of its own (`random_schedule`), so that reading a scenario does not import every
fault.
"""

from __future__ import annotations

import msgspec

from urteil.chaos.fault_options import Option


class WeightedFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that may be drawn, with its possible targets and options. One value is drawn for an
    option with several. `duration_s` is the range of its duration; None is the range of the
    schedule. `brings` names the events that the fault causes: other faults may be anchored to
    them."""

    fault: str
    targets: tuple[str, ...] = ("random",)
    weight: float = 1.0
    duration_s: tuple[float, float] | None = None
    alone: bool = False
    options: dict[str, Option | tuple[Option, ...]] = {}
    brings: tuple[str, ...] = ()


class RandomSchedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a schedule is drawn from weighted faults.

    It has `count` faults, or `per_minute` of load; without either, as many as fit into the load. At
    most `at_once` are active. The first fault begins at `first_s` or later. Durations and the
    pauses between a healing and the next begin are drawn from their ranges. `anchors` weighs the
    anchors of faults: `time`, `acks`, or an event that the previous fault causes (without such an
    event, time). `voids` names the promises that faults may void; a fault that voids another
    promise is not drawn.
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
