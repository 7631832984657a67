"""What a fault is: chosen by role, begun with a proof, healed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from urteil.chaos.aim import Aim
from urteil.chaos.controls import Controls, Link, Probe

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether a fault acted, and what showed it."""

    acted: bool
    text: str


class Fault:
    """One injection. `begin` once, then `heal`; heal may be called after a begin that failed.

    `targets` names the nodes or links chosen, once begun. `options` documents what `Aim.options`
    may hold; an unknown one is a ValueError.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    selectors: ClassVar[str] = (
        "leader, follower, followers, controller, random, minority, all, node"
    )
    options: ClassVar[dict[str, str]] = {}
    needs_containers: ClassVar[bool] = False

    def __init__(self, aim: Aim) -> None:
        unknown = sorted(set(aim.options) - set(self.options))
        if unknown:
            raise ValueError(f"{self.name} takes no option {', '.join(unknown)}")
        self.aim = aim
        self.targets: tuple[str, ...] = ()

    def begin(self, controls: Controls) -> Proof:
        """Act, and show that it acted. LabFailure when the lab cannot."""
        raise NotImplementedError

    def heal(self, controls: Controls) -> str:
        """Undo it; says what showed that it is undone. Repeatable."""
        raise NotImplementedError


def together(action: Callable[[str], T], nodes: Sequence[str]) -> list[T]:
    """`action` on all nodes at once, answers in their order; the first failure is raised."""
    if len(nodes) < 2:
        return [action(node) for node in nodes]
    with ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(action, nodes))


def probe_all(controls: Controls, links: Sequence[Link], *, timeout_s: float) -> list[Probe]:
    """A probe through each link, at once."""
    with ThreadPoolExecutor(max(1, min(16, len(links)))) as pool:
        return list(pool.map(lambda link: controls.net.probe(link, timeout_s=timeout_s), links))
