"""The process of the guard, which heals an external cluster when the lab ends (`guard.py`).

    python -m urteil.harness.cluster.guard_process FILE.toml

The lab announces on standard input each fault with its expiry, each act on a node, and its own
regular end. At the end of the input without that announcement, and when a fault expires, the guard
heals all links of FILE.toml and the nodes that were acted on.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from operator import not_
from pathlib import Path

from urteil.chaos.links import Links
from urteil.chaos.observations import LabFailure, NodeState
from urteil.chaos.waiting import until
from urteil.harness.cluster.external import (
    ExternalPlan,
    NodeCommands,
    TheirToxiproxies,
    run_step,
)
from urteil.harness.cluster.guard import HELD_TOO_LONG
from urteil.harness.targets.external import load_external

HEAL_DEADLINE_S = 120.0
AGAIN_S = 1.0
LONGEST_WAIT_S = 3600.0


class GuardProcess:
    """The faults and the acts on nodes that the lab announced, and their healing."""

    def __init__(self, path: Path, log: Callable[[str], None]) -> None:
        self._log = log
        file = load_external(path)
        plan = ExternalPlan(file)
        self._links = Links(plan, TheirToxiproxies())
        self._commands = NodeCommands(path, file)
        self._expires: dict[int, tuple[float, str]] = {}
        self._nodes: dict[str, str] = {}
        self._is_signed_off = False

    def watch(self) -> None:
        """Read until the pipe ends. Then heal, unless the lab has signed off."""
        partial_line = b""
        while chunk := self._next():
            *lines, partial_line = (partial_line + chunk).split(b"\n")
            for line in lines:
                self._handle(json.loads(line))
        if not self._is_signed_off:
            self._heal_and_log("the lab is gone")

    def _next(self) -> bytes:
        """The next bytes of the pipe. Heals faults that expire meanwhile."""
        while True:
            first = min((at for at, _ in self._expires.values()), default=None)
            wait_s = LONGEST_WAIT_S if first is None else max(0.0, first - time.monotonic())
            if select.select([0], [], [], wait_s)[0]:
                return os.read(0, 4096)
            late = [expiry for at, expiry in self._expires.values() if at <= time.monotonic()]
            if late:
                self._heal_and_log(f"{HELD_TOO_LONG}: {', '.join(late)}")

    def _handle(self, message: dict[str, object]) -> None:
        match message:
            case {"hold": int(number), "fault": str(fault), "expiry_s": float() | int() as left_s}:
                self._expires[number] = (time.monotonic() + left_s, fault)
            case {"release": int(number)}:
                self._expires.pop(number, None)
            case {"act": str(act), "node": str(node)}:
                self._nodes[node] = act
            case {"bye": True}:
                self._is_signed_off = True

    def heal_all(self) -> None:
        """Heal every link, and every node that the file has commands for."""
        self._nodes = dict.fromkeys(self._commands.with_state(), "heal")
        self._heal("requested")

    def _heal(self, why: str) -> None:
        """Heal links first, since starting nodes need them. Failed steps are repeated until a
        deadline.

        Raises LabFailure then, with what could not be healed.
        """
        self._log(f"healing: {why}")
        problem = until(self._heal_remaining, not_, deadline_s=HEAL_DEADLINE_S, poll_s=AGAIN_S)
        if problem:
            raise LabFailure(f"could not be healed: {problem}")
        self._expires.clear()
        self._log("healed")

    def _heal_and_log(self, why: str) -> None:
        try:
            self._heal(why)
        except LabFailure as failure:
            self._log(str(failure))
            self._expires.clear()

    def _heal_remaining(self) -> str:
        """Try to heal all links and nodes, even after failures. Returns the failures as text,
        empty if there are none."""
        problems = [run_step("links", lambda: self._links.heal(self._links.links()))]
        problems += [run_step(node, partial(self._restore_node, node)) for node in self._nodes]
        return "; ".join(filter(None, problems))

    def _restore_node(self, node: str) -> None:
        state = self._commands.status(node).state
        if state is NodeState.PAUSED:
            self._commands.resume(node)
            self._log(f"{node} was paused and is resumed")
        elif state is NodeState.DEAD:
            self._commands.start(node)
            self._log(f"{node} was dead and is started")


def _log_line(text: str) -> None:
    """A line of guard.log."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    GuardProcess(Path(sys.argv[1]), _log_line).watch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
