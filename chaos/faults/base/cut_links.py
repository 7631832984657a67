"""The base class of faults that cut links, and its proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.fault import (
    Fault,
    Proof,
    describe_broken_links,
    describe_stopped_nodes,
    probe_all,
)
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link, Probe

PROBE_S = 0.5
CLOSE: bool = flag("break connections rather than stall them")
ANSWERS_ONLY: bool = flag("requests arrive, their responses do not")
"""The options `close` and `answers_only` of faults that cut links."""


def cut_and_prove(
    controls: Controls,
    links: Sequence[Link],
    *,
    owner: str,
    close: bool = False,
    answers_only: bool = False,
) -> Proof:
    """Cut `links` and prove it."""
    net = controls.net
    if close:
        return prove_silence(controls, links, lambda: net.close(links, owner=owner))
    return prove_silence(
        controls, links, lambda: net.cut(links, answers_only=answers_only, owner=owner)
    )


def prove_silence(controls: Controls, links: Sequence[Link], act: Callable[[], object]) -> Proof:
    """Call `act`. The proof is a probe through each link, answered before and silent after. Links
    whose destination did not answer before (it is down) are ignored. NoTarget, before acting, if no
    link remains."""
    before = {p.link: p for p in probe_all(controls, links, timeout_s=2 * PROBE_S)}
    if not any(probe.answered for probe in before.values()):
        raise NoTarget("no destination of these links responds")
    act()
    after = probe_all(controls, links, timeout_s=PROBE_S)
    comparable = [probe for probe in after if before[probe.link].answered]
    silent = [probe for probe in comparable if not probe.answered]
    text = "; ".join(_sentence(before[p.link], p) for p in comparable)
    return Proof(acted=bool(silent) and len(silent) == len(comparable), text=text)


def describe_answers(controls: Controls, links: Sequence[Link]) -> str:
    """The number of links that carry responses now. A destination that another fault stopped or cut
    off is silent."""
    after = probe_all(controls, links, timeout_s=PROBE_S)
    silent = [probe.link for probe in after if not probe.answered]
    down = describe_stopped_nodes(controls, sorted({link.dst for link in silent}))
    text = f"{len(after) - len(silent)} of {len(after)} links respond"
    return f"{text} ({down})" if down else text


def _sentence(before: Probe, after: Probe) -> str:
    rtt = "" if before.rtt_ms is None else f" in {before.rtt_ms:.1f} ms"
    now = "still answers" if after.answered else f"silent for {PROBE_S * 1000:.0f} ms"
    return f"{before.link} answered{rtt}, then {now}"


class CutLinks(Fault):
    """A fault whose whole effect is a set of cut links."""

    effects = frozenset({Effect.CUTS_LINKS})
    proves = "a probe through each link, answered before, silent after, answered again once healed"
    close: bool = CLOSE
    answers_only: bool = False
    links: tuple[Link, ...] = ()

    def choose(self, controls: Controls) -> list[Link]:
        """Select the links to cut by the current state of the cluster."""
        raise NotImplementedError

    def begin(self, controls: Controls) -> Proof:
        self.links = tuple(self.choose(controls))
        self.targets = tuple(map(str, self.links))
        return cut_and_prove(
            controls,
            self.links,
            owner=self.owner,
            close=self.close,
            answers_only=self.answers_only,
        )

    def heal(self, controls: Controls) -> str:
        controls.net.heal(self.links, owner=self.owner)
        return describe_answers(controls, self.links)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_broken_links(controls, self.links)
