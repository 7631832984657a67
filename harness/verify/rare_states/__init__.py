"""The rare states that are counted in every run, by subject.

Each module of `ROOMS` has its `STATES`; the other modules are shared.
"""

from __future__ import annotations

from importlib import import_module

from urteil.harness.verify.rare_states.base import RareState

_ORDER = (
    *("replication", "elections", "metadata", "clients", "transactions", "groups", "cleaning"),
    *("administration", "storage"),
)

ROOMS: dict[str, tuple[RareState, ...]] = {
    room: import_module(f"{__name__}.{room}").STATES for room in _ORDER
}
"""Subject (a module of this package) to its states, in the order of reports."""

STATES: dict[str, RareState] = {state.name: state for states in ROOMS.values() for state in states}
"""Name to state, in the order of reports."""

__all__ = ["ROOMS", "STATES", "RareState"]
