"""The SASL mechanisms of a listener, each with its login module, and their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from urteil.broker.config.listener_overrides import ListenerSettings
from urteil.broker.config.values import ConfigError, known_keys
from urteil.broker.security.kerberos.gssapi import (
    GSSAPI,
    GssapiExchange,
    KerberosService,
    load_service,
)
from urteil.broker.security.oauth.json_web_tokens import (
    SignedValidator,
    UnsecuredValidator,
    unsecured_token,
)
from urteil.broker.security.oauth.oauthbearer import (
    OAUTHBEARER,
    OAuthBearerExchange,
    OAuthBearerLogin,
    Validator,
)
from urteil.broker.security.sasl.jaas import LoginModule, parse_jaas
from urteil.broker.security.sasl.plain import PLAIN, PlainExchange, PlainLogin
from urteil.broker.security.sasl.sasl_exchange import Exchange, Login
from urteil.broker.security.sasl.scram import HASHES, Find, ScramExchange, ScramLogin

MODULES = {
    PLAIN: "PlainLoginModule",
    **dict.fromkeys(HASHES, "ScramLoginModule"),
    OAUTHBEARER: "OAuthBearerLoginModule",
    GSSAPI: "Krb5LoginModule",
}
_SIGNED = "OAuthBearerValidatorCallbackHandler"
_UNSECURED = "OAuthBearerUnsecuredValidatorCallbackHandler"
_HANDLER = "sasl.server.callback.handler.class"
_KEYS = "sasl.oauthbearer.jwks.endpoint.url"
_TIMES = ("refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms")

if TYPE_CHECKING:
    from urteil.broker.security.oauth.jwks import KeySet
    from urteil.broker.security.oauth.remote_keys import RemoteKeys

_JAAS = "sasl.jaas.config"
_REAUTH = "connections.max.reauth.ms"


@dataclass(frozen=True, slots=True)
class SaslMechanisms:
    """Times in ms. `max_session_ms` by mechanism; 0: a session lasts as long as its connection."""

    modules: Mapping[str, LoginModule]
    max_session_ms: Mapping[str, int]
    failure_delay_ms: int
    max_receive_bytes: int
    validator: Validator | None
    kerberos: KerberosService | None
    now_ms: Callable[[], float]

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The names of the mechanisms, in the order of the setting."""
        return tuple(self.modules)

    def exchange(self, mechanism: str, find: Find) -> Exchange:
        """Begin the exchange of an enabled mechanism with a new peer."""
        if mechanism == PLAIN:
            return PlainExchange(self.modules[mechanism].options)
        if self.validator is not None and mechanism == OAUTHBEARER:
            return OAuthBearerExchange(self.validator)
        if self.kerberos is not None and mechanism == GSSAPI:
            return GssapiExchange(self.kerberos)
        return ScramExchange(mechanism, find)

    def login(self, mechanism: str, host: str) -> Login:
        """Return the login with which this broker authenticates at the peer `host`."""
        if self.kerberos is not None and mechanism == GSSAPI:
            return self.kerberos.login(host)
        options = self.modules[mechanism].options
        if mechanism == OAUTHBEARER:
            return OAuthBearerLogin(unsecured_token(options, self.now_ms()))
        return PlainLogin(options) if mechanism == PLAIN else ScramLogin(mechanism, options)


def load_mechanisms(
    settings: ListenerSettings, inter_broker_mechanism: str | None, now_ms: Callable[[], float]
) -> SaslMechanisms:
    """Load the mechanisms from settings. Raises ConfigError. `inter_broker_mechanism` is set for
    the inter-broker listener."""
    enabled = settings.value("sasl.enabled.mechanisms")
    if inter_broker_mechanism is not None and inter_broker_mechanism not in enabled:
        raise ConfigError(
            "requirement failed: sasl.mechanism.inter.broker.protocol must be included in "
            "sasl.enabled.mechanisms when SASL is used for inter-broker communication"
        )
    modules = {mechanism: _module(settings, mechanism) for mechanism in enabled}
    options = modules[OAUTHBEARER].options if OAUTHBEARER in modules else None
    return SaslMechanisms(
        modules=modules,
        max_session_ms={mechanism: _max_session_ms(settings, mechanism) for mechanism in enabled},
        failure_delay_ms=settings.value("connection.failed.authentication.delay.ms"),
        max_receive_bytes=settings.value("sasl.server.max.receive.size"),
        kerberos=_kerberos(settings, modules[GSSAPI].options) if GSSAPI in modules else None,
        validator=None if options is None else _validator(settings, options, now_ms),
        now_ms=now_ms,
    )


def _kerberos(settings: ListenerSettings, options: Mapping[str, str]) -> KerberosService:
    rules = settings.value("sasl.kerberos.principal.to.local.rules")
    try:
        return load_service(options, settings.value("sasl.kerberos.service.name"), rules)
    except ValueError as error:
        name = f"{settings.prefix}{GSSAPI.lower()}.{_JAAS}"
        raise ConfigError(f"Invalid value [hidden] for configuration {name}: {error}") from None


def _validator(
    settings: ListenerSettings, options: Mapping[str, str], now_ms: Callable[[], float]
) -> Validator:
    """The validator of tokens: of unsecured ones, unless a handler is set that verifies
    signatures."""
    handler = (
        settings.own_value(f"{OAUTHBEARER.lower()}.{_HANDLER}") or settings.value(_HANDLER) or ""
    )
    kind = handler.rpartition(".")[2] or _UNSECURED
    if kind == _UNSECURED:
        return UnsecuredValidator(options, now_ms)
    if kind != _SIGNED:
        raise ConfigError(
            f"Invalid value {handler} for configuration {_HANDLER}: one of Apache Kafka's own two, "
            f"{_SIGNED} and {_UNSECURED}"
        )
    audiences = settings.value("sasl.oauthbearer.expected.audience")
    return SignedValidator(
        verify=_keys(settings, options).verify,
        now_ms=now_ms,
        skew_ms=settings.value("sasl.oauthbearer.clock.skew.seconds") * 1000,
        subject_claim=settings.value("sasl.oauthbearer.sub.claim.name"),
        audiences=frozenset(audiences) if audiences else None,
        issuer=settings.value("sasl.oauthbearer.expected.issuer"),
    )


def _keys(settings: ListenerSettings, options: Mapping[str, str]) -> KeySet | RemoteKeys:
    from urteil.broker.security.oauth.jwks import KeySet
    from urteil.broker.security.oauth.remote_keys import remote_keys

    url = settings.value(_KEYS)
    location = urlsplit(url or "")
    try:
        if location.scheme == "file":
            return KeySet(Path(unquote(location.path)))
        if location.scheme in ("http", "https"):
            times = (settings.value(f"sasl.oauthbearer.jwks.endpoint.{name}") for name in _TIMES)
            return remote_keys(url, options.get("ssl.truststore.location"), *times)
    except (OSError, ValueError) as error:
        raise ConfigError(f"Invalid value {url} for configuration {_KEYS}: {error}") from None
    raise ConfigError(
        f"Invalid value {url} for configuration {_KEYS}: a set of keys is at https://..., "
        "http://... or file:///..."
    )


def _module(settings: ListenerSettings, mechanism: str) -> LoginModule:
    if mechanism not in MODULES:
        raise ConfigError(
            f"Invalid value {mechanism} for configuration sasl.enabled.mechanisms: this broker "
            f"speaks {', '.join(MODULES)}"
        )
    name = f"{mechanism.lower()}.{_JAAS}"
    text = settings.own_value(name)
    if text is None:
        raise ConfigError(
            f"Missing required configuration {settings.prefix}{name}: the login module of "
            f"{mechanism}"
        )
    try:
        module = parse_jaas(text)
    except ValueError as error:
        raise ConfigError(
            f"Invalid value [hidden] for configuration {settings.prefix}{name}: {error}"
        ) from None
    if module.name.rpartition(".")[2] != MODULES[mechanism]:
        raise ConfigError(
            f"Invalid value [hidden] for configuration {settings.prefix}{name}: "
            f"{module.name} where {MODULES[mechanism]} belongs"
        )
    return module


def _max_session_ms(settings: ListenerSettings, mechanism: str) -> int:
    key = known_keys()[_REAUTH]
    raw = settings.own_value(f"{mechanism.lower()}.{_REAUTH}")
    value = settings.value(_REAUTH) if raw is None else key.parse(raw)
    assert isinstance(value, int)
    return max(value, 0)
