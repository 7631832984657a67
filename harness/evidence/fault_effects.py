"""The effects of a fault, by its row in the table `faults` or implied by its name.

Rows of earlier runs lack the column `effects`, and so do histories of other tools. Only this module
derives effects from a name. A fault without known effects may have any: a judgement then excuses
nothing that only harmless effects excuse.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from urteil.chaos.effects import Effect
from urteil.chaos.faults import FAULTS

KILLED = ("exit -9", "exit 137")
"""Part of the proof of a controlled shutdown in an earlier run: it took too long and was killed."""

OTHER_TOOLS = {
    "clock": Effect.MOVES_CLOCKS,
    "time": Effect.MOVES_CLOCKS,
    "disk": Effect.FILLS_DISKS,
    "segment": Effect.DAMAGES_FILES,
    "pause": Effect.PAUSES_NODES,
}
"""Word in the name of another tool's fault to its effect."""


def effects_of(fault: dict[str, Any]) -> frozenset[str]:
    """The effects of a row of `faults`; empty if none is known."""
    if (written := fault.get("effects")) is not None:
        return _written_effects(written)
    effects = named_effects(str(fault["fault"]))
    if Effect.STOPS_NODES in effects and any(
        statement in str(fault.get("proof")) for statement in KILLED
    ):
        return effects - {Effect.STOPS_NODES} | {Effect.KILLS_NODES}
    return effects


@lru_cache(maxsize=1024)
def named_effects(name: str) -> frozenset[str]:
    """The effects that the name of a fault implies."""
    if name in FAULTS:
        return frozenset(FAULTS[name].effects)
    return frozenset(effect for word, effect in OTHER_TOOLS.items() if word in name.lower())


@lru_cache(maxsize=1024)
def _written_effects(text: str) -> frozenset[str]:
    return frozenset(map(str, json.loads(text)))
