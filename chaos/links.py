"""The links of a running cluster: a Toxiproxy server beside every node, and its proxies."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from urteil.chaos.link_probes import probe
from urteil.chaos.link_rules import LinkRule, RuleHit
from urteil.chaos.link_transfers import BAD_FRAME, MONITOR, framed_request, transfer
from urteil.chaos.message_fields import kafka_name
from urteil.chaos.observations import (
    CLIENT,
    DOWNSTREAM,
    UPSTREAM,
    WAN,
    LabFailure,
    Link,
    Probe,
    Transfer,
    UnreadableLink,
)
from urteil.chaos.parallel import run_on_all
from urteil.chaos.protocol_names import API_NAMES
from urteil.chaos.topology import Address, Plan, ProxyPlan
from urteil.chaos.toxiproxy import Toxic, ToxiproxyFailed, ToxiproxyServer, ToxiproxyStuck
from urteil.chaos.waiting import until

STREAMS = (DOWNSTREAM, UPSTREAM)
"""Responses stall first, so that a cut often loses the response of a request that was served: the
harder case for clients."""

START_DEADLINE_S = 10.0
HEAL_DEADLINE_S = 15.0
VERIFY_S = 2.0
POLL_S = 0.02


class Processes(Protocol):
    """The runtime of the Toxiproxy servers."""

    def start_toxiproxy(self, node: str, host: str, port: int, config: str) -> None:
        """Start the server beside `node` with the proxies of `config` (Toxiproxy's JSON)."""
        ...

    def kill_toxiproxy(self, node: str) -> None:
        """SIGKILL it; returns when it is gone."""
        ...

    def toxiproxy_alive(self, node: str) -> bool: ...


class Links:
    """Implements `chaos.link_controls.LinkControls` for a cluster laid out by a `Plan`."""

    def __init__(self, plan: Plan, processes: Processes) -> None:
        self._plan = plan
        self._processes = processes
        self._servers = {node: ToxiproxyServer(*plan.toxiproxy(node)) for node in plan.nodes}
        self._lock = threading.RLock()
        self._toxics: dict[Link, list[Toxic]] = {}
        self._closed: dict[Link, set[str]] = {}
        self._rules: dict[str, tuple[LinkRule, tuple[Link, ...]]] = {}
        self._hits_lost: dict[str, set[str]] = {}
        self.restarts = 0

    def start(self, *, closed: Sequence[Link] = ()) -> None:
        """Start all servers. The links of `closed` stay closed until they are healed.

        LabFailure unless every other proxy listens before the deadline.
        """
        for link in closed:
            self._closed.setdefault(link, set()).add("")
        for node in self._servers:
            self._launch(node)
        run_on_all(self._await_proxies, self._servers)

    def links(self) -> Sequence[Link]:
        return self._plan.links()

    def links_between(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Link]:
        pairs = {(a, b) for a in left for b in right} | {(b, a) for a in left for b in right}
        return [link for link in self.links() if (link.src, link.dst) in pairs]

    def links_of(self, node: str, *, clients: bool = True) -> Sequence[Link]:
        return [
            link
            for link in self.links()
            if node in (link.src, link.dst)
            and (clients or node == WAN or link.src not in (CLIENT, WAN))
        ]

    def cut(self, links: Sequence[Link], *, answers_only: bool = False, owner: str = "") -> None:
        for stream in STREAMS[:1] if answers_only else STREAMS:
            name = _toxic_name(f"cut_{stream}", owner)
            stall = Toxic(name=name, type="bandwidth", stream=stream, attributes={"rate": 0})
            self._add(links, stall)

    def latency(
        self,
        links: Sequence[Link],
        *,
        latency_ms: int,
        jitter_ms: int = 0,
        answers_only: bool = False,
        owner: str = "",
    ) -> None:
        delays = {"latency": latency_ms, "jitter": jitter_ms}
        stream = DOWNSTREAM if answers_only else UPSTREAM
        name = _toxic_name(f"latency_{stream}", owner)
        self._add(links, Toxic(name=name, type="latency", stream=stream, attributes=delays))

    def add_toxic(
        self,
        links: Sequence[Link],
        kind: str,
        attributes: Mapping[str, int],
        *,
        streams: Sequence[str] = STREAMS,
        owner: str = "",
    ) -> None:
        for stream in streams:
            name = _toxic_name(f"{kind}_{stream}", owner)
            self._add(
                links, Toxic(name=name, type=kind, stream=stream, attributes=dict(attributes))
            )

    def measure_transfer(
        self,
        link: Link,
        *,
        request_count: int = 1,
        request_bytes: int = 0,
        dst_closes: bool = False,
        timeout_s: float = 5.0,
    ) -> Transfer:
        address = self._plan.link_address(link)
        if link.dst in self._plan.zookeepers:
            return transfer(link, *address, requests=[MONITOR], framed=False, timeout_s=timeout_s)
        request = framed_request(request_bytes)
        requests = [request] * request_count if request_bytes else [request * request_count]
        last = BAD_FRAME if dst_closes else b""
        return transfer(
            link, *address, requests=requests, framed=True, last=last, timeout_s=timeout_s
        )

    def add_rule(self, links: Sequence[Link], rule: LinkRule, *, owner: str) -> None:
        if reason := self.describe_unreadable(links):
            raise UnreadableLink(f"no rule can act: {reason}")
        with self._lock:
            self._rules[owner] = (rule, tuple(links))
            for node in _by_source(links):
                self._add_rules(node, [owner])

    def rule_hits(self, links: Sequence[Link], *, owner: str) -> Sequence[RuleHit]:
        return self.new_hits(links, owner=owner, seen={})[0]

    def new_hits(
        self, links: Sequence[Link], *, owner: str, seen: dict[str, int]
    ) -> tuple[Sequence[RuleHit], int]:
        names = {proxy.name: str(link) for link in links for proxy in self._plan.proxies(link)}
        hits, forgotten = list[RuleHit](), 0
        for node in _by_source(links):
            since = seen.get(node, 0)
            events, seen[node] = self._servers[node].hits(since)
            forgotten += max(0, seen[node] - since) - len(events)
            hits += [
                _rule_hit(event, names[event["link"]], self._plan.lab_time(node, event["at_ns"]))
                for event in events
                if event["rule"] == owner and event["link"] in names
            ]
        return sorted(hits, key=lambda hit: hit.at_ns), forgotten

    def lost_hits(self, *, owner: str) -> str:
        with self._lock:
            nodes = sorted(self._hits_lost.get(owner, ()))
        beside = " and ".join(nodes)
        return f"the Toxiproxy beside {beside} was restarted and forgot its hits" if nodes else ""

    def describe_unreadable(self, links: Sequence[Link]) -> str:
        """The links whose frames cannot be read, with the reason; empty if there is none."""
        reasons = []
        for node, its_links in _by_source(links).items():
            passed = self._servers[node].passed_frames()
            for link in its_links:
                proxies = [proxy.name for proxy in self._plan.proxies(link)]
                unread = [name for name in proxies if name not in (passed or {})]
                if not unread:
                    continue
                if passed is None:
                    address = self._servers[node].address
                    why = f"{address} is a plain Toxiproxy; the lab's (chaos/proxy) reads frames"
                elif self._plan.layout.encrypted:
                    why = "its clients use TLS, which no proxy can read"
                else:
                    why = f'the proxy {unread[0]} was not created with "kafka": true'
                reasons.append(f"{link}: {why}")
        return "; ".join(reasons)

    def passed_frames(self, links: Sequence[Link]) -> str:
        names = {proxy.name for link in links for proxy in self._plan.proxies(link)}
        counts: Counter[str] = Counter()
        for node in _by_source(links):
            for name, passed in (self._servers[node].passed_frames() or {}).items():
                if name in names:
                    counts.update({kafka_name(api): n for api, n in passed["requests"].items()})
                    counts["unread connections"] += passed["unread"]
        return ", ".join(f"{count} {what}" for what, count in counts.most_common() if count)

    def _add_rules(self, node: str, owners: Iterable[str]) -> None:
        """Add rules to the Toxiproxy beside `node`, for those of their links that begin there."""
        for owner in owners:
            rule, links = self._rules[owner]
            proxies = [
                proxy.name
                for link in links
                if link.src == node
                for proxy in self._plan.proxies(link)
            ]
            if proxies:
                self._servers[node].add_rule(rule.body(owner, proxies))

    def _remove_rules(self, owner: str | None) -> None:
        """Remove the rule of `owner`, or all rules."""
        for name in [holder for holder in self._rules if owner in (None, holder)]:
            _, links = self._rules.pop(name)
            for node in _by_source(links):
                self._servers[node].remove_rule(name)

    def close(self, links: Sequence[Link], *, owner: str = "") -> None:
        with self._lock:
            for link in links:
                self._closed.setdefault(link, set()).add(owner)
            self._on_proxies(links, lambda server, name: server.set_enabled(name, False))

    def heal(self, links: Sequence[Link], *, owner: str | None = None) -> None:
        with self._lock:
            self._remove_rules(owner)
            for link in links:
                self._forget(link, owner)
            run_on_all(lambda item: self._heal_source(*item), _by_source(links).items())

    def _forget(self, link: Link, owner: str | None) -> None:
        """Remove the faults of `owner`, or all faults, from the intended state of a link."""
        toxics = self._toxics.pop(link, [])
        closed = self._closed.pop(link, set())
        if owner is None:
            return
        if remaining := [toxic for toxic in toxics if toxic.name.partition(".")[2] != owner]:
            self._toxics[link] = remaining
        if closed - {owner}:
            self._closed[link] = closed - {owner}

    def heal_all(self) -> None:
        with self._lock:
            self.heal(self.links())
            run_on_all(self._verify_source, self._servers)

    def probe(self, link: Link, *, timeout_s: float = 1.0) -> Probe:
        return self._probe_at(link, self._plan.link_address(link), timeout_s)

    def check(self) -> None:
        for node in self._servers:
            if not self._processes.toxiproxy_alive(node):
                raise LabFailure(f"the Toxiproxy beside {node} died")
        run_on_all(lambda server: server.version(), self._servers.values())

    def disturbed_links(self) -> dict[Link, tuple[str, ...]]:
        """See `LinkControls.active`."""
        with self._lock:
            toxics = {
                link: tuple(toxic.name for toxic in toxics) for link, toxics in self._toxics.items()
            }
            ruled = {
                link: (f"rule {owner}",)
                for owner, (_, links) in self._rules.items()
                for link in links
            }
            return {**ruled, **toxics, **{link: ("closed",) for link in self._closed}}

    def _add(self, links: Sequence[Link], toxic: Toxic) -> None:
        """Add a toxic to all links in parallel; it replaces a toxic of the same name."""
        with self._lock:
            older = [link for link in links if toxic.name in self._names(link)]
            for link in older:
                self._toxics[link] = [
                    existing for existing in self._toxics[link] if existing.name != toxic.name
                ]
            run_on_all(lambda item: self._heal_source(*item), _by_source(older).items())
            for link in links:
                self._toxics[link] = [*self._toxics.get(link, []), toxic]
            self._on_proxies(links, lambda server, name: server.add_toxic(name, toxic))

    def _names(self, link: Link | None) -> list[str]:
        return [toxic.name for toxic in self._toxics.get(link, [])] if link else []

    def _on_proxies(
        self, links: Iterable[Link], act: Callable[[ToxiproxyServer, str], None]
    ) -> None:
        """Act on every proxy of the links. A server that hangs is restarted."""

        def on_source(item: tuple[str, list[Link]]) -> None:
            node, its_links = item
            try:
                for proxy in (proxy for link in its_links for proxy in self._plan.proxies(link)):
                    act(self._servers[node], proxy.name)
            except ToxiproxyStuck:
                self.restart(node)

        run_on_all(on_source, _by_source(links).items())

    def _heal_source(self, node: str, links: Sequence[Link]) -> None:
        """Bring the proxies of one server to their intended state; restart it if it hangs."""
        server = self._servers[node]
        try:
            states = server.proxies()
            for proxy in (proxy for link in links for proxy in self._plan.proxies(link)):
                state = states.get(proxy.name)
                if state is None:
                    raise LabFailure(f"the proxy {proxy.name} vanished")
                server.remove_toxics_except(state, self._names(proxy.link))
                if not state.enabled and proxy.link not in self._closed:
                    server.set_enabled(proxy.name, True)
        except ToxiproxyStuck:
            self.restart(node)

    def restart(self, node: str) -> None:
        """Start another server with the same proxies and faults. Its connections break."""
        self._processes.kill_toxiproxy(node)
        self.restarts += 1
        self._launch(node)
        self._await_proxies(node)
        server = self._servers[node]
        for owner, (_, links) in self._rules.items():
            if node in _by_source(links):
                self._hits_lost.setdefault(owner, set()).add(node)
        self._add_rules(node, self._rules)
        for link, toxics in self._toxics.items():
            for proxy in self._plan.proxies(link) if link.src == node else ():
                for toxic in toxics:
                    server.add_toxic(proxy.name, toxic)
                server.set_enabled(proxy.name, link not in self._closed)

    def _verify_source(self, node: str) -> None:
        """LabFailure unless every proxy of a healed server is clean and works."""
        if not self._processes.toxiproxy_alive(node):
            raise LabFailure(f"the Toxiproxy beside {node} died")
        for state in self._servers[node].proxies().values():
            if state.toxics or not state.enabled:
                raise LabFailure(f"the proxy {state.name} did not heal")
        for link in self.links():
            if link.src == node:
                self._verify(link)

    def _verify(self, link: Link) -> None:
        """Wait until the link carries a response; restart its Toxiproxy once if it hangs."""
        began = time.monotonic()
        restarted = False
        while not (through := self.probe(link, timeout_s=VERIFY_S)).answered:
            if not self._probe_directly(link).answered:
                return  # the node does not respond: the link cannot be judged
            waited_s = time.monotonic() - began
            if waited_s > HEAL_DEADLINE_S:
                raise LabFailure(f"a healed link stays broken: {through.detail}")
            if not restarted and waited_s > VERIFY_S:
                restarted = True
                self.restart(link.src)

    def _probe_directly(self, link: Link) -> Probe:
        return self._probe_at(link, self._plan.direct_address(link.dst), VERIFY_S)

    def _probe_at(self, link: Link, address: Address, timeout_s: float) -> Probe:
        is_kafka = link.dst not in self._plan.zookeepers
        return probe(link, *address, is_kafka=is_kafka, timeout_s=timeout_s)

    def _proxies_of(self, node: str) -> list[ProxyPlan]:
        links = [link for link in self.links() if link.src == node]
        of_links = [proxy for link in links for proxy in self._plan.proxies(link)]
        return [*self._plan.entry_proxies(node), *of_links]

    def _launch(self, node: str) -> None:
        """Start the server. Proxies with a fault stay disabled until they have their toxics."""
        config = [
            proxy.config(enabled=self._open_at_start(proxy.link))
            for proxy in self._proxies_of(node)
        ]
        host, port = self._plan.toxiproxy_listens(node)
        self._processes.start_toxiproxy(node, host, port, json.dumps(config, indent=1))

    def _open_at_start(self, link: Link | None) -> bool:
        return link not in self._toxics and link not in self._closed

    def _await_proxies(self, node: str) -> None:
        """Wait until the server of `node` reports its proxies in their intended state."""
        expected = {proxy.name: self._open_at_start(proxy.link) for proxy in self._proxies_of(node)}
        problem = until(
            lambda: self._describe_difference(node, expected),
            lambda problem: not problem or not self._processes.toxiproxy_alive(node),
            deadline_s=START_DEADLINE_S,
            poll_s=POLL_S,
        )
        if problem:
            raise LabFailure(f"the Toxiproxy beside {node} does not serve: {problem}")

    def _describe_difference(self, node: str, expected: dict[str, bool]) -> str:
        """The differences between the server's proxies and `wanted` (enabled by name); empty if
        they agree."""
        try:
            states = self._servers[node].proxies()
        except ToxiproxyFailed as error:
            return str(error)
        enabled = {name: state.enabled for name, state in states.items()}
        wrong = sorted(
            name for name, is_enabled in expected.items() if enabled.get(name) != is_enabled
        )
        return f"proxies in the wrong state: {wrong}" if wrong else ""


def _rule_hit(event: Mapping[str, Any], link: str, lab_time: tuple[int, int]) -> RuleHit:
    at_ns, bound_ns = lab_time
    return RuleHit(
        at_ns=at_ns,
        bound_ns=bound_ns,
        link=link,
        direction=event["direction"],
        api=API_NAMES[event["api_key"]],
        version=event["version"],
        correlation_id=event["correlation_id"],
        client_id=event["client_id"],
        act=event["act"],
        occurrence=event["occurrence"],
        detail=event.get("detail", ""),
        message=event.get("message"),
        size_bytes=event["bytes"],
        connection=event["connection"],
        answered_in_ns=event.get("answered_in_ns"),
    )


def _toxic_name(what: str, owner: str) -> str:
    """The name of a toxic: unique by kind and injection."""
    return f"{what}.{owner}" if owner else what


def _by_source(links: Iterable[Link]) -> dict[str, list[Link]]:
    groups: dict[str, list[Link]] = {}
    for link in links:
        groups.setdefault(link.src, []).append(link)
    return groups
