"""A typed layer over toxiproxy-python with a deadline on every call.

toxiproxy-python keeps host and port on its API class (one subclass a server here), answers errors
of the server with KeyError or not at all (every answer is checked here), and would send loopback
calls through HTTP_PROXY (switched off here).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import requests
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from urteil.chaos.views import LabFailure

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
