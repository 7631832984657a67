"""The bounds within which a seed draws a whole scenario: a declaration for each drawn property.

Drawing is a module of its own (`drawn_scenario`), so that reading a scenario does not import every
fault and client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Value = str | int | float | bool | None
"""None leaves the property at its default."""
Place = Literal["cluster", "brokers", "clients", "options", "topic", "topic settings", "faults"]
"""Where a property is: a field of the cluster, a setting of all brokers, a field or an option of
the workload, a field or a setting of each topic, a field of the random schedule."""


class Dimension(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A property that the seed draws: one of `values`, by `weights` (equal ones if there are none).

    With `only_with`, it is drawn only where each named property, drawn before it, has one of the
    given values. Several dimensions may draw one property under different conditions.
    """

    name: str
    of: Place
    values: tuple[Value, ...]
    weights: tuple[float, ...] = ()
    only_with: Mapping[str, tuple[Value, ...]] = {}

    def __post_init__(self) -> None:
        if not self.values or len(self.weights) not in (0, len(self.values)):
            raise ValueError(f"{self.name}: give at least one value, and a weight for each or none")


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The dimensions of a scenario, in the order in which they are drawn. `topics` is how many
    topics there are, and `most_replicas` bounds the replicas of all of their partitions."""

    dimensions: tuple[Dimension, ...]
    most_replicas: int
