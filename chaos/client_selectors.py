"""Selects clients by kind or name, for the faults that act on clients."""

from __future__ import annotations

import re

from urteil.chaos.controls import ClientControls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import NodeState

KINDS = {
    "producer": "producer",
    "member": "group",
    "reader": "consumer",
    "app": "app",
    "transactional": "txn",
    "copier": "copier",
    "committer": "committer",
}

_NAME = re.compile(r"[a-z]+\d+(\.\d+)?")
SELECTORS = (
    "producer, member, reader, app, transactional, copier, committer (one, by the seed), "
    "producers, members and so on, a client"
)


def select_clients(controls: ClientControls, arguments: FaultArguments) -> list[str]:
    """The clients that the target selects now. NoTarget if no client of the kind runs; ValueError
    for a name that is neither a kind nor a client."""
    target = arguments.target
    if target.removesuffix("s") in KINDS:
        candidates = running_clients(controls, KINDS[target.removesuffix("s")])
        if not candidates:
            raise NoTarget(f"no {target.removesuffix('s')} runs")
        return candidates if target.endswith("s") else [arguments.random().choice(candidates)]
    known = [name for kind in KINDS.values() for name in controls.names(kind)]
    names = [name.strip() for name in target.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no client: give {SELECTORS} ({', '.join(known)})")
    return names


def check_target(target: str) -> None:
    """ValueError for a target that is neither a kind nor the form of a client's name (`p1.2`)."""
    names = [name.strip() for name in target.split(",")]
    if target.removesuffix("s") in KINDS or all(map(_NAME.fullmatch, names)):
        return
    raise ValueError(f"{target!r} is no client: give {SELECTORS}")


def running_clients(controls: ClientControls, kind: str) -> list[str]:
    """The clients of a kind whose processes run, sorted by name."""
    return [
        name
        for name in sorted(controls.names(kind))
        if controls.status(name).state is NodeState.RUNNING
    ]
