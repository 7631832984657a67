"""The labs, in the order of a course. Each file declares `LABS`, its labs in order."""

from __future__ import annotations

from urteil.suites.courses.lab import Lab
from urteil.suites.courses.labs import (
    basics,
    compaction,
    configs,
    console,
    customers,
    groups,
    listeners,
    moves,
    python,
    racks,
    security,
    zookeeper,
)

ALL: tuple[Lab, ...] = (
    *basics.LABS,
    *console.LABS,
    *customers.LABS,
    *groups.LABS,
    *compaction.LABS,
    *configs.LABS,
    *moves.LABS,
    *python.LABS,
    *zookeeper.LABS,
    *listeners.LABS,
    *racks.LABS,
    *security.LABS,
)
