"""What a fault is: chosen by role, begun with a proof, healed, and nothing left of it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from urteil.chaos.aim import Aim, Option
from urteil.chaos.controls import Controls
from urteil.chaos.views import Link, NodeState, Probe

T = TypeVar("T")

WHOM = {
    "group": "the consumer group whose coordinator is meant",
    "transactional_id": "the producer whose coordinator is meant",
}
"""Options of every fault, for the role `coordinator`; `topic` and `partition` are the aim's own."""

YES_OR_NO = {"answers_only", "brokers", "clients", "close", "for_good", "kill", "once", "repair"}
YES_OR_NO |= {"up", "zookeeper"}
WORDS = {"command", "direction", "how", *WHOM}
"""What options are, whatever fault takes them; all others are numbers."""

EXPIRY_S = 60.0
HEALED_S = 3.0
POLL_S = 0.1
PROCESS, DOCKER = "process", "docker"
URTEIL, KAFKA, MIX, EXTERNAL = "urteil", "kafka", "mix", "external"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether a fault acted, and what showed it.

    `harm` names the records that it destroyed (docs/reference/evidence.md, column `harm`).
    """

    acted: bool
    text: str
    harm: str | None = None


class Fault:
    """One injection. `begin` once, then `heal`; heal may be called after a begin that failed.

    A fault is a module of `chaos/faults/` with one subclass, named in `FAULTS`. It says of itself:

    - `name`, `about`; `family`: network, process, container, disk, zookeeper, clock, clients or
      administration; `selectors`: what its target may be, in the words that other faults have,
      since files of schedules are checked by them; `options`: what `Aim.options` may hold beside
      WHOM: numbers, but for YES_OR_NO and WORDS. Another one is a ValueError.
    - `proves`: what shows that it acted. `begin` measures it before and after, and a fault that
      had no effect answers `Proof(acted=False)`. What it measured is the proof's text.
    - `on_runtimes` and `on_targets`: where it can act; `unfit` tells why not elsewhere.
    - `sample` and `sample_options`: what `urteil faults check` aims it at, on an idle cluster of
      three brokers with a topic of three replicas, and `sample_s`, how long it acts. A fault that
      needs more than an idle cluster (clients at work) has an empty sample.
    - `expiry_s`: how long after its planned end, or after the death of the lab, it is gone at the
      latest. Whoever plays a fault tells `Controls.hold` before it begins and `Controls.release`
      once it healed; what stands beside the cluster heals what was held too long. On a cluster of
      the run's own the reaper ends everything. A fault that acts from a thread of its own (flaps,
      loops) ends it in `heal`, and the thread is a daemon.

    `targets` names the nodes or links chosen, once begun. `owner` is this injection's own name
    on links (`LinkControls`), so that healing one fault leaves another's on the same link.
    A node that a fault may bring to an end (a full disk, no file descriptors) is announced by
    `Controls.may_end`, lest the lab be blamed; `heal` starts it again where it died.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    family: ClassVar[str]
    proves: ClassVar[str]
    selectors: ClassVar[str] = "a role or a node"
    options: ClassVar[dict[str, str]] = {}
    expiry_s: ClassVar[float] = EXPIRY_S
    on_runtimes: ClassVar[tuple[str, ...]] = (PROCESS, DOCKER)
    on_targets: ClassVar[tuple[str, ...]] = (URTEIL, KAFKA, MIX, EXTERNAL)
    sample: ClassVar[str] = "leader"
    sample_options: ClassVar[Mapping[str, Option]] = {}
    sample_s: ClassVar[float] = 0.0

    def __init__(self, aim: Aim) -> None:
        unknown = sorted(set(aim.options) - {*self.options, *WHOM})
        if unknown:
            raise ValueError(f"{self.name} takes no option {', '.join(unknown)}")
        for option in set(aim.options) - WORDS:
            if option in YES_OR_NO:
                aim.flag(option)
            else:
                aim.number(option, 0.0)
        self.aim = aim
        self.owner = f"{self.name}_{next(_numbers)}"
        self.targets: tuple[str, ...] = ()

    def begin(self, controls: Controls) -> Proof:
        """Act, and show that it acted. LabFailure when the lab cannot."""
        raise NotImplementedError

    def voids(self) -> frozenset[str]:
        """Promises of safe settings that it makes void with this aim: a schedule is drawn with it
        only where the scenario says so. `durability`: what was acknowledged may be gone (power
        taken from all replicas, all disks lost); `clean_election`: a leader may lack records;
        `retention`: records go sooner than their topic said."""
        return frozenset()

    def heal(self, controls: Controls) -> str:
        """Undo it; says what showed that it is undone. Repeatable."""
        raise NotImplementedError

    def remains(self, controls: Controls) -> str:
        """After healing: what of it is still to be seen; empty when nothing is.

        Asked on a cluster that nothing else disturbs, once it is healthy.
        """
        raise NotImplementedError

    @classmethod
    def unfit(cls, *, runtime: str, target: str) -> str:
        """Why it cannot act there; empty when it can. `target` as `--target` takes it."""
        kind = target.partition(":")[0]
        if kind not in cls.on_targets:
            return f"the fault {cls.name} does not act on --target {kind}"
        if kind != EXTERNAL and runtime not in cls.on_runtimes:
            return f"the fault {cls.name} acts on --runtime {' or '.join(cls.on_runtimes)} alone"
        return ""


def together(action: Callable[[str], T], nodes: Sequence[str]) -> list[T]:
    """`action` on all nodes at once, answers in their order; the first failure is raised."""
    if len(nodes) < 2:
        return [action(node) for node in nodes]
    with ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(action, nodes))


def not_running(controls: Controls, nodes: Sequence[str]) -> str:
    """Which of the nodes does not run; empty when all do: what node faults leave behind."""
    states = [controls.status(node) for node in nodes]
    return ", ".join(
        f"{one.node} is {one.state.value}" for one in states if one.state is not NodeState.RUNNING
    )


def still_broken(controls: Controls, links: Sequence[Link]) -> str:
    """Which of the links has a fault still, or carries no answer: what link faults leave behind."""
    active = controls.net.active()
    left = [f"{link} is {', '.join(active[link])}" for link in links if link in active]
    silent = [p for p in probe_all(controls, links, timeout_s=HEALED_S) if not p.answered]
    return "; ".join([*left, *(probe.detail or f"{probe.link} is silent" for probe in silent)])


def probe_all(controls: Controls, links: Sequence[Link], *, timeout_s: float) -> list[Probe]:
    """A probe through each link, at once."""
    with ThreadPoolExecutor(max(1, min(16, len(links)))) as pool:
        return list(pool.map(lambda link: controls.net.probe(link, timeout_s=timeout_s), links))


def until(condition: Callable[[], bool], *, deadline_s: float) -> bool:
    """Wait until it holds; whether it did in time."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(POLL_S)
    return True
