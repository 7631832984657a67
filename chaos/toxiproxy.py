"""A typed layer over toxiproxy-python with a deadline on every call.

toxiproxy-python keeps host and port on its API class (one subclass a server here), answers errors
of the server with KeyError or not at all (every answer is checked here), and would send loopback
calls through HTTP_PROXY (switched off here).
"""

from __future__ import annotations

from collections.abc import Collection
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
    """The server refused a call, is gone, or did not answer in time."""


class ToxiproxyStuck(ToxiproxyFailed):
    """No answer before the deadline: the server's lock is held by a peer that does not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toxic:
    """One toxic on one stream: `upstream` is what the source sends, `downstream` the answers."""

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
        """The names of a stream's toxics, in the order in which its data pass them."""
        return [one.name for one in self.toxics if one.stream == stream]


class ToxiproxyServer:
    """The API of one Toxiproxy server; every call raises ToxiproxyFailed unless it succeeded."""

    def __init__(self, host: str, port: int, *, deadline_s: float = DEADLINE_S) -> None:
        self.address = f"{host}:{port}"
        self._deadline_s = deadline_s
        self._api = type("Api", (APIConsumer,), {"host": host, "port": port})

    def proxies(self) -> dict[str, ProxyState]:
        """All proxies by name."""
        found = self._call("get", "/proxies").json()
        return {name: _proxy_state(value) for name, value in found.items()}

    def create(self, name: str, *, listen: str, upstream: str, enabled: bool = True) -> None:
        body = {"name": name, "listen": listen, "upstream": upstream, "enabled": enabled}
        self._call("post", "/proxies", json=body)

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

    def keep(self, proxy: ProxyState, names: Collection[str]) -> None:
        """Let only the toxics of these names stay.

        A connection that one of its toxics has closed keeps its whole chain. When that loses any
        but its last toxic, those behind are never reached again, hold the connection for ever, and
        the server panics as soon as the next toxic is added (2.12.0, link.go). So toxics go from
        the end, and where one that stays stands behind one that goes, the proxy is made anew: its
        connections end.
        """
        if any(_stays_behind(proxy.chain(stream), names) for stream in (UPSTREAM, DOWNSTREAM)):
            self._make_anew(proxy, names)
            return
        for toxic in reversed(proxy.toxics):
            if toxic.name not in names:
                self.remove_toxic(proxy.name, toxic.name)

    def _make_anew(self, proxy: ProxyState, names: Collection[str]) -> None:
        self._call("delete", f"/proxies/{proxy.name}", timeout=REMOVE_DEADLINE_S)
        self.create(proxy.name, listen=proxy.listen, upstream=proxy.upstream, enabled=False)
        for toxic in proxy.toxics:
            if toxic.name in names:
                self.add_toxic(proxy.name, toxic)
        self.set_enabled(proxy.name, proxy.enabled)

    def remove_toxic(self, proxy: str, toxic: str) -> None:
        """Nothing happens when the proxy has no such toxic.

        For every connection that its client closed while it was stalled, Toxiproxy waits 5 s here
        under its lock. So a short deadline: what takes longer is started anew.
        """
        path = f"/proxies/{proxy}/toxics/{toxic}"
        try:
            self._call("delete", path, timeout=REMOVE_DEADLINE_S)
        except NotFound:
            return

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
            raise ToxiproxyFailed(f"Toxiproxy {self.address} is gone: {error}") from error
        except (InvalidToxic, ProxyExists) as error:
            raise ToxiproxyFailed(f"Toxiproxy {self.address} refused {path}: {error}") from error
        if answer.status_code == 503:
            raise ToxiproxyStuck(f"Toxiproxy {self.address} gave up: {method} {path}")
        if not answer.ok:
            raise ToxiproxyFailed(f"Toxiproxy {self.address} {path}: {answer.text.strip()}")
        return answer


def _stays_behind(chain: list[str], names: Collection[str]) -> bool:
    """Whether one of `names` stands in the chain behind one that is none of them."""
    stays = [name in names for name in chain]
    return stays != sorted(stays, reverse=True)


def _proxy_state(value: dict[str, Any]) -> ProxyState:
    toxics = tuple(
        Toxic(
            name=one["name"], type=one["type"], stream=one["stream"], attributes=one["attributes"]
        )
        for one in value["toxics"]
    )
    return ProxyState(
        name=value["name"],
        listen=value["listen"],
        upstream=value["upstream"],
        enabled=value["enabled"],
        toxics=toxics,
    )
