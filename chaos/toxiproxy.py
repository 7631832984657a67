"""A typed layer over toxiproxy-python with a deadline on every call.

toxiproxy-python keeps host and port on its API class, reports errors of the server as KeyError or
not at all, and sends loopback calls through HTTP_PROXY. So this module makes a subclass for each
server, checks every response, and disables proxies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from urteil.chaos.observations import DOWNSTREAM, UPSTREAM, LabFailure

DEADLINE_S = 3.0
REMOVE_DEADLINE_S = 1.5
NO_PROXY = {"http": None, "https": None, "all": None}


class ToxiproxyFailed(LabFailure):
    """The server rejected a call, is dead, or did not respond in time."""


class ToxiproxyStuck(ToxiproxyFailed):
    """The server did not respond before the deadline: a peer that does not read blocks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toxic:
    """One toxic on one stream: `upstream` carries requests, `downstream` responses."""

    name: str
    type: str
    stream: str
    attributes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyState:
    """A proxy as its server reports it."""

    name: str
    listen: str
    upstream: str
    enabled: bool
    toxics: tuple[Toxic, ...]

    def chain(self, stream: str) -> list[str]:
        """The names of a stream's toxics, in the order in which data passes them."""
        return [toxic.name for toxic in self.toxics if toxic.stream == stream]


class ToxiproxyServer:
    """The API of one Toxiproxy server; every failed call raises ToxiproxyFailed."""

    def __init__(self, host: str, port: int, *, deadline_s: float = DEADLINE_S) -> None:
        self.address = f"{host}:{port}"
        self._deadline_s = deadline_s
        self._api = type("Api", (APIConsumer,), {"host": host, "port": port})

    def proxies(self) -> dict[str, ProxyState]:
        """All proxies by name."""
        proxies = self._call("get", "/proxies").json()
        return {name: _proxy_state(value) for name, value in proxies.items()}

    def create(
        self,
        name: str,
        *,
        listen: str,
        upstream: str,
        enabled: bool = True,
        reads_frames: bool = False,
    ) -> None:
        body = {"name": name, "listen": listen, "upstream": upstream, "enabled": enabled}
        self._call("post", "/proxies", json=body | {"kafka": reads_frames})

    def set_enabled(self, proxy: str, enabled: bool) -> None:
        """Disabling closes all connections of the proxy and its listener at once."""
        self._call("post", f"/proxies/{proxy}", json={"enabled": enabled})

    def add_toxic(self, proxy: str, toxic: Toxic) -> None:
        body = {
            "name": toxic.name,
            "type": toxic.type,
            "stream": toxic.stream,
            "toxicity": 1.0,
            "attributes": toxic.attributes,
        }
        self._call("post", f"/proxies/{proxy}/toxics", json=body)

    def remove_toxics_except(self, proxy: ProxyState, names: Collection[str]) -> None:
        """Remove all toxics of the proxy except those with these names.

        A connection that a toxic has closed keeps its chain of toxics. If a toxic other than the
        last one is removed from that chain, those behind it hold the connection forever, and the
        server panics when the next toxic is added (2.12.0, link.go). So toxics are removed from the
        end. If a remaining toxic is behind a removed one, the proxy is recreated, which ends its
        connections.
        """
        if any(_stays_behind(proxy.chain(stream), names) for stream in (UPSTREAM, DOWNSTREAM)):
            self._recreate(proxy, names)
            return
        for toxic in reversed(proxy.toxics):
            if toxic.name not in names:
                self.remove_toxic(proxy.name, toxic.name)

    def _recreate(self, proxy: ProxyState, names: Collection[str]) -> None:
        reads_frames = proxy.name in (self.passed_frames() or {})
        self._call("delete", f"/proxies/{proxy.name}", timeout=REMOVE_DEADLINE_S)
        self.create(
            proxy.name,
            listen=proxy.listen,
            upstream=proxy.upstream,
            enabled=False,
            reads_frames=reads_frames,
        )
        for toxic in proxy.toxics:
            if toxic.name in names:
                self.add_toxic(proxy.name, toxic)
        self.set_enabled(proxy.name, proxy.enabled)

    def remove_toxic(self, proxy: str, toxic: str) -> None:
        """Remove a toxic if the proxy has it.

        For every connection whose client closed it while it was stalled, Toxiproxy waits 5 s under
        its lock. So the deadline is short, and a server that takes longer is restarted.
        """
        path = f"/proxies/{proxy}/toxics/{toxic}"
        try:
            self._call("delete", path, timeout=REMOVE_DEADLINE_S)
        except NotFound:
            return

    def add_rule(self, body: Mapping[str, Any]) -> None:
        """Add a rule of links (`LinkRule.body`)."""
        self._call("post", "/rules", json=dict(body))

    def remove_rule(self, name: str) -> None:
        """Remove a rule, if there is one of that name; held frames go on."""
        try:
            self._call("delete", f"/rules/{name}")
        except NotFound:
            return

    def hits(self, since: int = 0) -> tuple[list[dict[str, Any]], int]:
        """The frames on which rules have acted, in order, from number `since` on, and the number of
        the next one. The server discards the oldest ones beyond its limit."""
        response = self._call("get", f"/events?from={since}").json()
        return list(response["events"]), int(response["next"])

    def passed_frames(self) -> dict[str, dict[str, Any]] | None:
        """The frames that passed, by proxy that reads them: `requests` and `answers` by API, and
        the number of `unread` connections, whose content is not Kafka. None for a plain Toxiproxy.
        """
        try:
            return dict(self._call("get", "/links").json())
        except NotFound:
            return None

    def version(self) -> str:
        answer = self._call("get", "/version")
        try:
            return str(answer.json()["version"])
        except (ValueError, KeyError, TypeError):
            return str(answer.text).strip()

    def _call(self, method: str, path: str, **options: Any) -> Any:
        call = getattr(self._api, method)
        options = {"timeout": self._deadline_s, "proxies": NO_PROXY, **options}
        try:
            answer = call(path, **options)
        except requests.Timeout as error:
            raise ToxiproxyStuck(f"Toxiproxy {self.address} hangs: {method} {path}") from error
        except requests.RequestException as error:
            raise ToxiproxyFailed(f"Toxiproxy {self.address} is dead: {error}") from error
        except (InvalidToxic, ProxyExists) as error:
            raise ToxiproxyFailed(f"Toxiproxy {self.address} rejected {path}: {error}") from error
        if answer.status_code == 503:
            raise ToxiproxyStuck(f"Toxiproxy {self.address} gave up: {method} {path}")
        if not answer.ok:
            raise ToxiproxyFailed(f"Toxiproxy {self.address} {path}: {answer.text.strip()}")
        return answer


def _stays_behind(chain: list[str], names: Collection[str]) -> bool:
    """Whether a toxic of `names` is behind another toxic in the chain."""
    kept = [name in names for name in chain]
    return kept != sorted(kept, reverse=True)


def _proxy_state(value: dict[str, Any]) -> ProxyState:
    toxics = tuple(
        Toxic(
            name=toxic["name"],
            type=toxic["type"],
            stream=toxic["stream"],
            attributes=toxic["attributes"],
        )
        for toxic in value["toxics"]
    )
    return ProxyState(
        name=value["name"],
        listen=value["listen"],
        upstream=value["upstream"],
        enabled=value["enabled"],
        toxics=toxics,
    )
