"""Clients by role, for the faults that act on them."""

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
    """The clients that the aim's target means now. NoTarget when nobody of the kind runs,
    ValueError for a name that is neither kind nor client."""
    target = arguments.target
    if target.removesuffix("s") in KINDS:
        found = running_clients(controls, KINDS[target.removesuffix("s")])
        if not found:
            raise NoTarget(f"no {target.removesuffix('s')} runs")
        return found if target.endswith("s") else [arguments.random().choice(found)]
    known = [name for kind in KINDS.values() for name in controls.names(kind)]
    names = [name.strip() for name in target.split(",")]
    strange = [name for name in names if name not in known]
    if strange:
        raise ValueError(f"{strange[0]!r} is no client: {SELECTORS} ({', '.join(known)})")
    return names


def check_target(target: str) -> None:
    """ValueError for what cannot be a kind nor a client's name (`p1`, `p1.2`) in any run."""
    names = [name.strip() for name in target.split(",")]
    if target.removesuffix("s") in KINDS or all(map(_NAME.fullmatch, names)):
        return
    raise ValueError(f"{target!r} is no client: {SELECTORS}")


def running_clients(controls: ClientControls, kind: str) -> list[str]:
    """Clients of a kind whose process runs, in order."""
    return [
        name
        for name in sorted(controls.names(kind))
        if controls.status(name).state is NodeState.RUNNING
    ]
