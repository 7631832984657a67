"""Delay with jitter on links: all of them, or those of one node or pair."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import flag, whole_number
from urteil.chaos.faults.base.degraded_links import CLIENTS, SHOWN_S, select_fault_links
from urteil.chaos.faults.base.fault import HEALED_S, Fault, Proof, describe_broken_links, probe_all
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link
from urteil.chaos.waiting import until

REPEATS = 2
"""Further measurements of each link before the fault: one alone may be slow by host load."""


class Latency(Fault):
    """Delays the links. Proof: round trips measured before and after.

    `all` selects every link of the cluster; a node or role selects all links from and to it.
    """

    name = "latency"
    about = "delay with jitter on the links among all nodes, or of one node, or of a pair"
    effects = frozenset({Effect.SLOWS_LINKS})
    proves = "round trips longer than before by most of the delay"
    sample = "follower"
    selectors = "all, a role, a node, or a pair left->right"
    latency_ms: int = whole_number(200, "delay of a request", unit="ms", least=1, most=60_000)
    jitter_ms: int = whole_number(0, "plus or minus, latency_ms at most", unit="ms", least=0)
    answers_only: bool = flag("delay responses instead of requests")
    clients: bool = CLIENTS
    links: tuple[Link, ...] = ()

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        if self.jitter_ms > self.latency_ms:
            raise ValueError(f"jitter_ms={self.jitter_ms} is not between 0 and latency_ms")

    def begin(self, controls: Controls) -> Proof:
        latency_ms, jitter_ms = self.latency_ms, self.jitter_ms
        self.links = tuple(select_fault_links(controls, self.arguments, clients=self.clients))
        self.targets = tuple(map(str, self.links))
        timeout_s = 2 + 4 * (latency_ms + jitter_ms) / 1000
        before = _round_trips(controls, self.links, timeout_s=timeout_s)
        if not before:
            raise NoTarget("no node behind these links responds")
        for _ in range(REPEATS):
            again = _round_trips(controls, tuple(before), timeout_s=timeout_s)
            before = {link: min(ms, again.get(link, ms)) for link, ms in before.items()}
        controls.net.latency(
            self.links,
            latency_ms=latency_ms,
            jitter_ms=jitter_ms,
            answers_only=self.answers_only,
            owner=self.owner,
        )
        after: dict[Link, float] = {}

        def is_delayed() -> bool:
            """Compares the longest round trip of each link, because jitter may shorten one."""
            for link, rtt_ms in _round_trips(controls, self.links, timeout_s=timeout_s).items():
                after[link] = max(rtt_ms, after.get(link, 0.0))
            both = [link for link in after if link in before]
            late = [link for link in both if after[link] - before[link] >= 0.6 * latency_ms]
            return bool(both) and len(late) == len(both)

        return Proof(
            acted=until(is_delayed, deadline_s=SHOWN_S), text=_describe_round_trips(before, after)
        )

    def heal(self, controls: Controls) -> str:
        controls.net.heal(self.links, owner=self.owner)
        now = _round_trips(controls, self.links, timeout_s=HEALED_S)
        fastest = f", fastest round trip {min(now.values()):.1f} ms" if now else ""
        return f"{len(now)} of {len(self.links)} links respond{fastest}"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_broken_links(controls, self.links)


def _round_trips(
    controls: Controls, links: tuple[Link, ...], *, timeout_s: float
) -> dict[Link, float]:
    probes = probe_all(controls, links, timeout_s=timeout_s)
    return {p.link: p.rtt_ms for p in probes if p.answered and p.rtt_ms is not None}


def _describe_round_trips(before: dict[Link, float], after: dict[Link, float]) -> str:
    both = [link for link in after if link in before]
    if not both:
        return "no link responded both before and after"
    first, slow = min(before[link] for link in both), min(after[link] for link in both)
    return f"{len(both)} links: fastest round trip {first:.1f} ms before, {slow:.1f} ms after"
