"""Security of listeners: TLS contexts, SASL mechanisms and the principals of certificates.

A broker has one `ListenerSecurity` for each listener that is not PLAINTEXT. `SecureListeners` holds
them and reloads keys, certificates and mechanisms after a change of settings. Open connections keep
what they were opened with.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from urteil.broker.base.one_per_turn import OnePerTurn
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.config.listener_overrides import ListenerSettings
from urteil.broker.config.listeners import PLAINTEXT, Listener
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.values import ConfigError, known_keys
from urteil.broker.net.connection import Connection
from urteil.broker.net.sasl_handshake import SaslHandshake
from urteil.broker.net.sasl_mechanisms import SaslMechanisms, load_mechanisms
from urteil.broker.security.principals import ANONYMOUS, USER, Principal
from urteil.broker.security.sasl.sasl_exchange import Login
from urteil.broker.security.sasl.scram import Find
from urteil.broker.security.sasl.scram_users import ScramUsers
from urteil.broker.security.tls.mapping_rules import MappingRules

log = logging.getLogger("security")

_OF_TLS = tuple(name for name in known_keys() if name.startswith("ssl."))
_FILES = ("ssl.keystore.location", "ssl.truststore.location")


class ListenerSecurity:
    """The security of a listener that is not PLAINTEXT.

    `reload` applies current settings and files to new connections. With `is_inter_broker`, this
    broker is also a client of its peers' listeners of that name.
    """

    def __init__(
        self,
        listener: Listener,
        *,
        is_inter_broker: bool,
        find: Callable[[str], Find] = lambda _: lambda *_: None,
        now_ms: Callable[[], float] = float,
    ) -> None:
        """`find` returns the credentials of a SASL mechanism."""
        self.name = listener.name
        self.protocol = listener.protocol
        self._is_inter_broker = is_inter_broker
        self._find = find
        self._now_ms = now_ms
        self._mechanisms: SaslMechanisms | None = None
        self._peer_mechanism = ""
        self._stamp: object = None
        self._material: Any = None
        self._rules = MappingRules("DEFAULT")
        self.for_clients: ssl.SSLContext | None = None
        self.to_peers: ssl.SSLContext | None = None
        self.handshakes = OnePerTurn()

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    def reload(self, properties: Mapping[str, str]) -> None:
        """Apply current settings and files. Raises ConfigError and keeps the previous state."""
        settings = ListenerSettings(properties, self.name)
        mechanisms = self._load_mechanisms(settings)
        self._reload_tls(settings)
        self._mechanisms = mechanisms
        self._peer_mechanism = settings.value("sasl.mechanism.inter.broker.protocol")

    def _reload_tls(self, settings: ListenerSettings) -> None:
        stamp = self._stamp_of(settings)
        if not self.uses_tls or stamp == self._stamp:
            return
        material, for_clients, to_peers = self._load_tls(settings)
        rules = self._load_rules(settings)
        if self._material is not None:
            log.info("listener %s: keys and certificates are read again", self.name)
        self._material, self._rules, self._stamp = material, rules, stamp
        self.for_clients, self.to_peers = for_clients, to_peers

    def check(self, properties: Mapping[str, str]) -> None:
        """Check whether `reload` could apply these properties while connections are open. Raises
        ConfigError."""
        settings = ListenerSettings(properties, self.name)
        self._load_mechanisms(settings)
        if not self.uses_tls or self._stamp_of(settings) == self._stamp:
            return
        from urteil.broker.security.tls.key_replacement import check_replacement

        material, _, _ = self._load_tls(settings)
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

    def guard(self, connection: Connection) -> None:
        """Require SASL authentication before all other requests, if the listener has SASL."""
        if self._mechanisms is not None:
            SaslHandshake(connection, self._mechanisms, self._find, self._now_ms)

    def login(self, host: str) -> tuple[str, Login] | None:
        """Return the mechanism and the login with which this broker authenticates at `host`; None
        without SASL."""
        if self._mechanisms is None:
            return None
        return self._peer_mechanism, self._mechanisms.login(self._peer_mechanism, host)

    def _load_mechanisms(self, settings: ListenerSettings) -> SaslMechanisms | None:
        if not self.protocol.startswith("SASL"):
            return None
        mechanism = settings.value("sasl.mechanism.inter.broker.protocol")
        return load_mechanisms(settings, mechanism if self._is_inter_broker else None, self._now_ms)

    def principal(self, tls: ssl.SSLObject | None) -> Principal:
        """Return the principal of a TLS client. Raises ValueError if no rule maps its name."""
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if not certificate or self.protocol != "SSL":
            return ANONYMOUS
        from urteil.broker.security.tls.contexts import subject

        return Principal(USER, self._rules.user(subject(certificate)))

    def _stamp_of(self, settings: ListenerSettings) -> object:
        values = [settings.value(name) for name in _OF_TLS]
        return values, [_state(settings.value(name)) for name in _FILES]

    def _load_tls(
        self, settings: ListenerSettings
    ) -> tuple[Any, ssl.SSLContext, ssl.SSLContext | None]:
        from urteil.broker.security.tls.contexts import TlsMaterial
        from urteil.broker.security.tls.key_replacement import check_own_trust

        auth = settings.own_value("ssl.client.auth")
        if self.protocol == "SASL_SSL" and auth is None:
            auth = "none"  # SASL clients need no certificate unless the setting says so
        try:
            material = TlsMaterial.load(settings, auth)
            made = material.server_context()
            to_peers = material.client_context() if self._is_inter_broker else None
            if self._is_inter_broker:
                check_own_trust(material)
        except ValueError as error:
            raise ConfigError(f"listener {self.name}: {error}") from None
        return material, made, to_peers

    def _load_rules(self, settings: ListenerSettings) -> MappingRules:
        rules = settings.value("ssl.principal.mapping.rules")
        try:
            return MappingRules(rules)
        except ValueError as error:
            raise ConfigError(
                f"Invalid value {rules} for configuration ssl.principal.mapping.rules: {error}"
            ) from None


def _state(path: str | None) -> object:
    """A value that changes when the file is replaced or written."""
    try:
        stat = Path(path).stat() if path else None
    except OSError:
        return None
    return stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino)


log = logging.getLogger("security")


class SecureListeners:
    """The security of all listeners. Changes of dynamic settings replace keys and certificates
    without a restart."""

    def __init__(
        self, config: BrokerConfig, users: ScramUsers, now_ms: Callable[[], float]
    ) -> None:
        self._properties = config.properties
        self.secure_listeners = {
            listener.name: ListenerSecurity(
                listener,
                is_inter_broker=listener.name == config.inter_broker_listener,
                find=users.lookup,
                now_ms=now_ms,
            )
            for listener in config.listeners
            if listener.protocol != PLAINTEXT
        }

    def reload(self) -> None:
        """Apply current settings and files. Raises ConfigError."""
        for listener in self.secure_listeners.values():
            listener.reload(self._properties)

    def check(self, properties: LiveProperties) -> None:
        """Check whether the properties could be applied. Raises ConfigError."""
        for listener in self.secure_listeners.values():
            listener.check(properties)

    def reload_or_log(self) -> None:
        """Like `reload`; an error is logged, and the previous state stays."""
        try:
            self.reload()
        except ConfigError as error:
            log.error("%s", error)
