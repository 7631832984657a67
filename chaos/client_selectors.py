"""Selects clients by kind or name, for the faults that act on clients."""

from __future__ import annotations

import re
from collections.abc import Sequence

from urteil.chaos.controls import ClientControls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import NodeState
from urteil.chaos.waiting import until

KINDS = {
    "producer": "producer",
    "member": "group",
    "reader": "consumer",
    "transactional": "txn",
    "copier": "copier",
    "committer": "committer",
    "share_member": "share_consumer",
    "list_appender": "list_append",
}

ROLES = ("app", "worker", "service")
"""Roles of an application's processes."""

LEADER = "app_leader"

_NAME = re.compile(r"[a-z]+\d+(\.\d+)?")
SELECTORS = (
    "producer, member, share_member, reader, app, worker, service, transactional, list_appender, "
    "copier, committer (one, by the seed), producers, members and so on, app_leader, a client"
)


def select_clients(controls: ClientControls, arguments: FaultArguments) -> list[str]:
    """The clients that the target selects now. Raises NoTarget if no client of the kind runs;
    ValueError for a name that is neither a kind nor a client."""
    target = arguments.target
    kind = target.removesuffix("s")
    if kind in KINDS or kind in ROLES:
        started = controls.names(KINDS[kind]) if kind in KINDS else controls.names_of_role(kind)
        candidates = running_clients(controls, started)
        if not candidates:
            raise NoTarget(f"no {kind} runs")
        return candidates if target.endswith("s") else [arguments.random().choice(candidates)]
    if target == LEADER:
        leader = until(controls.application_leader, deadline_s=arguments.election_deadline_s)
        if leader is None:
            raise NoTarget("no process is known to lead the application's group")
        return [leader]
    known = [name for kind in KINDS.values() for name in controls.names(kind)]
    known += [name for role in ROLES for name in controls.names_of_role(role)]
    names = [name.strip() for name in target.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a client: give {SELECTORS} ({', '.join(known)})")
    return names


def check_target(target: str) -> None:
    """Raises ValueError for a target that is neither a kind nor has the form of a client's name
    (`p1.2`)."""
    names = [name.strip() for name in target.split(",")]
    kinds = (*KINDS, *ROLES)
    if target.removesuffix("s") in kinds or target == LEADER or all(map(_NAME.fullmatch, names)):
        return
    raise ValueError(f"{target!r} is not a client: give {SELECTORS}")


def running_clients(controls: ClientControls, started: Sequence[str]) -> list[str]:
    """The running clients among those that were started, sorted by name."""
    return [name for name in sorted(started) if controls.status(name).state is NodeState.RUNNING]
