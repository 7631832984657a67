"""The base class of faults that act on single requests and answers of Kafka's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import Option, number, text, whole_number
from urteil.chaos.faults.base.degraded_links import select_fault_links
from urteil.chaos.faults.base.fault import Fault, Proof, describe_broken_links
from urteil.chaos.link_rules import (
    ANSWER,
    REQUEST,
    LinkRule,
    RuleHit,
    parse_fields,
    parse_versions,
)
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link

SHOWN_HITS = 5
UNREADABLE = "unreadable"
"""The proxy's act on a frame that a rule needs and that cannot be decoded."""


class RuleFault(Fault):
    """Puts a rule on links to brokers, until healing.

    The rule acts on what passes while the fault is active, so its proof is known after healing: the
    frames on which it acted, as the proxy reports them. Without a hit, with hits that a restarted
    proxy forgot, or with a frame that could not be read, the fault has no proof. NoTarget if no
    link to a broker is selected, UnreadableLink for TLS and for a plain Toxiproxy.
    """

    selectors = "all, a role, a node (their links to brokers), or a pair left->right"
    sample = "follower->leader"
    sample_options: ClassVar[Mapping[str, Option]] = {"api": "Fetch"}
    sample_s = 3.0
    proves = "the frames on which the proxy reports that the rule acted"
    direction: str = ANSWER
    acts_later = True

    api: str = text("", "name or key of the API, such as Produce or 0; empty: every API")
    occurrence: int = whole_number(1, "the first matching frame that is hit", least=1)
    times: int = whole_number(1, "frames that are hit from there on, 0: all", least=0)
    client_id: str = text("", "client id of the request, with *")
    versions: str = text("", "versions of the API: 9, 3-7, 3- or -7; empty: all")
    probability: float = number(1.0, "of a hit of each matching frame", least=0.001, most=1.0)
    fields: str = text("", "fields of the request: path=value, path=value (topics[].name=orders)")
    links: tuple[Link, ...] = ()
    _hits: tuple[RuleHit, ...] = ()
    _lost = ""
    _before = ""
    _passed = ""

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.rule()

    def rule(self) -> LinkRule:
        """The rule of this injection. ValueError for an unknown API, version, field or error."""
        raise NotImplementedError

    def make_rule(
        self,
        act: str,
        *,
        delay_ms: int = 0,
        error: str = "",
        path: str = "",
        value: str | None = None,
        truncated_bytes: int = 0,
        goes_on: bool = False,
        times: int | None = None,
    ) -> LinkRule:
        """A rule with the options of the fault."""
        fields = parse_fields(self.fields)
        is_request = self.direction == REQUEST
        min_version, max_version = parse_versions(self.versions)
        return LinkRule(
            direction=self.direction,
            act=act,
            api=self.api,
            occurrence=self.occurrence,
            times=self.times if times is None else times,
            probability=self.probability,
            seed=self.arguments.random().getrandbits(48),
            min_version=min_version,
            max_version=max_version,
            client_id=self.client_id,
            fields=fields if is_request else {},
            request_fields={} if is_request else fields,
            delay_ms=delay_ms,
            error=error,
            path=path,
            value=value,
            truncated_bytes=truncated_bytes,
            goes_on=goes_on,
        )

    def begin(self, controls: Controls) -> Proof:
        self._seen: dict[str, int] = {}
        selected = select_fault_links(controls, self.arguments, clients=True)
        self.links = tuple(link for link in selected if link.dst in controls.brokers)
        if not self.links:
            raise NoTarget(f"{self.arguments.target} selects no link to a broker")
        self.targets = tuple(map(str, self.links))
        self._before = controls.net.passed_frames(self.links)
        controls.net.add_rule(self.links, self.rule(), owner=self.owner)
        return Proof(acted=True, text="the rule waits for matching frames")

    def heal(self, controls: Controls) -> str:
        """The proxies keep the hits of a removed rule, so that none is missed."""
        controls.net.heal(self.links, owner=self.owner)
        self._lost = controls.net.lost_hits(owner=self.owner)
        self._hits = tuple(controls.net.rule_hits(self.links, owner=self.owner))
        self._passed = controls.net.passed_frames(self.links)
        return describe_hits(self._hits)

    def current_proof(self, controls: Controls, proof: Proof) -> Proof:
        hits = controls.net.rule_hits(self.links, owner=self.owner)
        return Proof(acted=True, text=describe_hits(hits)) if hits else replace(proof, acted=False)

    def final_proof(self, proof: Proof) -> Proof:
        if self._lost:
            return Proof(acted=False, text=f"{self._lost}; known: {describe_hits(self._hits)}")
        unread = [hit for hit in self._hits if hit.act == UNREADABLE]
        if unread:
            return Proof(acted=False, text=f"its connection was closed: {describe_hits(unread)}")
        if self._hits:
            return Proof(acted=True, text=describe_hits(self._hits))
        passed = f"{self._passed or 'nothing'} (before it: {self._before or 'nothing'})"
        return Proof(acted=False, text=f"no frame matched; these links carried {passed}")

    def new_hits(self, controls: Controls) -> tuple[Sequence[RuleHit], int]:
        """The hits since the last call, and the number of events that proxies discarded
        meanwhile."""
        return controls.net.new_hits(self.links, owner=self.owner, seen=self._seen)

    def link_events(self) -> Sequence[RuleHit]:
        return self._hits

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_broken_links(controls, self.links)


def describe_hits(hits: Sequence[RuleHit]) -> str:
    """The number of hits and the first of them."""
    first = "; ".join(map(str, hits[:SHOWN_HITS]))
    further = f"; {len(hits) - SHOWN_HITS} more" if len(hits) > SHOWN_HITS else ""
    return f"{len(hits)} frames: {first}{further}" if hits else "no frame matched"
