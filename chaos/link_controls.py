"""The operations on the network between nodes that chaos may call.

`chaos/controls.py` has the rules of all calls and the names of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from urteil.chaos.link_rules import LinkRule, RuleHit
from urteil.chaos.observations import DOWNSTREAM, UPSTREAM, Link, Probe, Transfer


class LinkControls(Protocol):
    """The network between the nodes. A one-way partition cuts `src->dst` and leaves `dst->src`."""

    def links(self) -> Sequence[Link]:
        """Every directed link, in a fixed order."""
        ...

    def links_between(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Link]:
        """Every link from a node of `left` to one of `right` and back (a two-way partition)."""
        ...

    def links_of(self, node: str, *, clients: bool = True) -> Sequence[Link]:
        """Every link from and to `node`; without `clients`, those of the workload are left out."""
        ...

    def cut(self, links: Sequence[Link], *, answers_only: bool = False, owner: str = "") -> None:
        """Stall the links: no byte passes either way; connections stay open and continue after
        healing.

        With `answers_only` requests still arrive, and their responses are lost. `owner` names the
        injection, here and below, because several injections may act on one link.
        """
        ...

    def close(self, links: Sequence[Link], *, owner: str = "") -> None:
        """Break the links: close connections and refuse new ones until healing."""
        ...

    def latency(
        self,
        links: Sequence[Link],
        *,
        latency_ms: int,
        jitter_ms: int = 0,
        answers_only: bool = False,
        owner: str = "",
    ) -> None:
        """Delay what `src` sends to `dst` over each link by `latency_ms` +- `jitter_ms`, or with
        `answers_only` what `dst` answers."""
        ...

    def add_toxic(
        self,
        links: Sequence[Link],
        kind: str,
        attributes: Mapping[str, int],
        *,
        streams: Sequence[str] = (DOWNSTREAM, UPSTREAM),
        owner: str = "",
    ) -> None:
        """Put a toxic of Toxiproxy on requests (UPSTREAM), responses (DOWNSTREAM) or both."""
        ...

    def add_rule(self, links: Sequence[Link], rule: LinkRule, *, owner: str) -> None:
        """Act on Kafka's frames on links to brokers, until healing. One rule per owner.

        UnreadableLink, with the reason, if the frames of a link cannot be read: TLS, or a proxy of
        a plain Toxiproxy.
        """
        ...

    def rule_hits(self, links: Sequence[Link], *, owner: str) -> Sequence[RuleHit]:
        """The frames on which the owner's rule has acted on these links, in order; also after
        healing."""
        ...

    def new_hits(
        self, links: Sequence[Link], *, owner: str, seen: dict[str, int]
    ) -> tuple[Sequence[RuleHit], int]:
        """The hits since the last call with the same `seen`, which it updates, and the number of
        events that the proxies discarded meanwhile because there were too many."""
        ...

    def lost_hits(self, *, owner: str) -> str:
        """The proxies that were restarted while the owner's rule was active, so that hits are
        unknown; empty if none was."""
        ...

    def passed_frames(self, links: Sequence[Link]) -> str:
        """A summary of the frames that passed on these links since their Toxiproxy started."""
        ...

    def measure_transfer(
        self,
        link: Link,
        *,
        request_count: int = 1,
        request_bytes: int = 0,
        dst_closes: bool = False,
        timeout_s: float = 5.0,
    ) -> Transfer:
        """Send `request_count` requests to `dst` over one connection and measure the responses.

        All requests are sent at once; with `request_bytes` they have that size and are sent one by
        one. A ZooKeeper server gets one request with a longer response. With `dst_closes` an
        invalid frame ends the connection, so that `dst` closes it; otherwise this side closes it.
        `closing_ms` is the time until the end reaches the other side.
        """
        ...

    def heal(self, links: Sequence[Link], *, owner: str | None = None) -> None:
        """Remove every fault of `owner` from these links; without an owner, all faults."""
        ...

    def disturbed_links(self) -> Mapping[Link, tuple[str, ...]]:
        """The links under a fault, with `closed` or the names of their toxics. Names of a cut's
        toxics begin with `cut_`."""
        ...

    def heal_all(self) -> None:
        """Remove every fault from every link and probe every proxy. Repeatable.

        A Toxiproxy that hangs is restarted with its proxies. LabFailure if a link stays broken
        although its node responds.
        """
        ...

    def probe(self, link: Link, *, timeout_s: float = 1.0) -> Probe:
        """Send one request through the link, to prove that a cut or a delay acts."""
        ...

    def check(self) -> None:
        """LabFailure if a Toxiproxy died or does not respond."""
        ...
