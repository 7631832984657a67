"""How one listener lets clients in: by TLS or not, and whom it takes them for."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from urteil.broker.security.mapping_rules import MappingRules
from urteil.broker.security.principals import ANONYMOUS, USER, Principal
from urteil.broker.server.config_values import ConfigError, known_keys
from urteil.broker.server.listeners import Listener

log = logging.getLogger("security")

_OF_TLS = tuple(name for name in known_keys() if name.startswith("ssl."))
_FILES = ("ssl.keystore.location", "ssl.truststore.location")


class ListenerSettings:
    """A listener's view of the properties: what has its prefix stands above the rest."""

    def __init__(self, properties: Mapping[str, str], listener: str) -> None:
        self._properties = properties
        self.prefix = f"listener.name.{listener.lower()}."

    def value(self, name: str) -> Any:
        """Typed; the default where nothing is set. Raises ConfigError."""
        key = known_keys()[name]
        return key.parse(self._properties.get(self.prefix + name, self.raw(name)))

    def raw(self, name: str) -> str | None:
        return self._properties.get(name, known_keys()[name].default)

    def own(self, name: str) -> str | None:
        """What is set for this listener alone; of a mechanism by `plain.sasl.jaas.config`."""
        return self._properties.get(self.prefix + name)


class Entrance:
    """The security of a listener that is not PLAINTEXT.

    `reload` takes on what settings and files say now; connections that stand keep what they have.
    `is_inter_broker`: this broker is also a client of its peers' listeners of that name.
    """

    def __init__(self, listener: Listener, *, is_inter_broker: bool) -> None:
        self.name = listener.name
        self.protocol = listener.protocol
        self._is_inter_broker = is_inter_broker
        self._stamp: object = None
        self._material: Any = None
        self._rules = MappingRules("DEFAULT")
        self.for_clients: ssl.SSLContext | None = None
        self.to_peers: ssl.SSLContext | None = None

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    def reload(self, properties: Mapping[str, str]) -> None:
        """Raises ConfigError, and keeps what it has."""
        settings = ListenerSettings(properties, self.name)
        stamp = self._stamp_of(settings)
        if not self.uses_tls or stamp == self._stamp:
            return
        material, for_clients, to_peers = self._made(settings)
        rules = self._ruled(settings)
        if self._material is not None:
            log.info("listener %s: keys and certificates are read again", self.name)
        self._material, self._rules, self._stamp = material, rules, stamp
        self.for_clients, self.to_peers = for_clients, to_peers

    def check(self, properties: Mapping[str, str]) -> None:
        """Whether `reload` could take on these while connections stand. Raises ConfigError."""
        settings = ListenerSettings(properties, self.name)
        if not self.uses_tls or self._stamp_of(settings) == self._stamp:
            return
        from urteil.broker.security.replacement import check_replacement

        material, _, _ = self._made(settings)
        try:
            check_replacement(
                self._material,
                material,
                allows_names=settings.value("ssl.allow.dn.changes"),
                allows_hosts=settings.value("ssl.allow.san.changes"),
                by_peers=self._is_inter_broker,
            )
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def principal(self, tls: ssl.SSLObject | None) -> Principal:
        """Of a peer that TLS let in. Raises ValueError when no rule gives it a name."""
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if not certificate or self.protocol != "SSL":
            return ANONYMOUS
        from urteil.broker.security.tls import subject

        return Principal(USER, self._rules.user(subject(certificate)))

    def _stamp_of(self, settings: ListenerSettings) -> object:
        values = [settings.value(name) for name in _OF_TLS]
        return values, [_state(settings.value(name)) for name in _FILES]

    def _made(
        self, settings: ListenerSettings
    ) -> tuple[Any, ssl.SSLContext, ssl.SSLContext | None]:
        from urteil.broker.security.replacement import check_own_trust
        from urteil.broker.security.tls import TlsMaterial

        auth = settings.own("ssl.client.auth")
        if self.protocol == "SASL_SSL" and auth is None:
            auth = "none"  # who is asked for a password is asked for a certificate on demand only
        try:
            material = TlsMaterial.load(settings, auth)
            made = material.server_context()
            to_peers = material.client_context() if self._is_inter_broker else None
            if self._is_inter_broker:
                check_own_trust(material)
        except ValueError as error:
            raise ConfigError(f"listener {self.name}: {error}") from None
        return material, made, to_peers

    def _ruled(self, settings: ListenerSettings) -> MappingRules:
        rules = settings.value("ssl.principal.mapping.rules")
        try:
            return MappingRules(rules)
        except ValueError as error:
            raise ConfigError(
                f"Invalid value {rules} for configuration ssl.principal.mapping.rules: {error}"
            ) from None


def _state(path: str | None) -> object:
    """What changes when a file is replaced or written."""
    try:
        found = Path(path).stat() if path else None
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)
