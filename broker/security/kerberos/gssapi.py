"""SASL GSSAPI (RFC 4752) without security layers, compatible with Java's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from urteil.broker.security.kerberos.gss_library import (
    Acceptor,
    Credentials,
    GssError,
    Initiator,
    default_realm,
)
from urteil.broker.security.kerberos.kerberos_names import PrincipalRules
from urteil.broker.security.principals import ANONYMOUS, USER, Principal
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange

GSSAPI = "GSSAPI"
_NO_LAYER = 1
_OFFER = bytes([_NO_LAYER]) + (65536).to_bytes(3, "big")


@dataclass(frozen=True, slots=True)
class KerberosService:
    """The broker's Kerberos service: its credentials, and the rules that map clients to users."""

    credentials: Credentials
    rules: PrincipalRules
    name: str
    principal: str
    keytab: str

    def login(self, host: str) -> GssapiLogin:
        """Return the login to the same service on another host."""
        return GssapiLogin(self, host)


def load_service(
    options: Mapping[str, str], service_name: str | None, rules: Sequence[str]
) -> KerberosService:
    """Load the service by `Krb5LoginModule`'s options `keyTab` and `principal`. Raises ValueError
    that names the mend."""
    named = options.get("serviceName")
    if not (named or service_name):
        raise ValueError("No serviceName defined in either JAAS or Kafka config")
    if named and service_name and named != service_name:
        raise ValueError(
            f"Conflicting serviceName values found in JAAS and Kafka configs: value in JAAS file "
            f"{named}, value in Kafka config {service_name}"
        )
    keytab, principal = options.get("keyTab"), options.get("principal")
    if not keytab or not principal:
        raise ValueError("the login module needs keyTab and principal: the broker has no other key")
    keytab = keytab.removeprefix("file:").removeprefix("FILE:")
    try:
        return KerberosService(
            credentials=Credentials(principal, keytab),
            rules=PrincipalRules(rules, default_realm()),
            name=named or service_name or "",
            principal=principal,
            keytab=keytab,
        )
    except (GssError, OSError) as error:
        raise ValueError(f"{principal} of {keytab}: {error}") from None


class GssapiExchange:
    """The server side: tokens of the context, then the negotiation of no layer."""

    expires_at_ms: float | None = None

    def __init__(self, service: KerberosService) -> None:
        self._service = service
        self._acceptor = Acceptor(service.credentials)
        self._offered = False
        self.is_complete = False
        self.principal = ANONYMOUS

    def step(self, message: bytes) -> bytes:
        try:
            return self._step(message)
        except (GssError, ValueError) as error:
            raise BrokenExchange(f"GSSAPI: {error}") from None

    def _step(self, message: bytes) -> bytes:
        acceptor = self._acceptor
        if acceptor.initiator is None:
            if not message:  # MIT's library would answer with an offer to negotiate
                raise BrokenExchange("GSSAPI: an empty token")
            answer = acceptor.step(message)
            return self._offer() if acceptor.initiator is not None and not answer else answer
        if not self._offered:
            if message:
                raise BrokenExchange("Handshake expecting no response data from server")
            return self._offer()
        chosen = acceptor.unwrap(message)
        if len(chosen) < len(_OFFER) or not chosen[0] & _NO_LAYER:
            raise BrokenExchange("Client selected unsupported protection")
        self.principal = Principal(USER, self._service.rules.user(acceptor.initiator))
        self.is_complete = True
        return b""

    def _offer(self) -> bytes:
        self._offered = True
        return self._acceptor.wrap(_OFFER)


class GssapiLogin:
    """The client side: tokens of the context, an empty message once it is established, no layer."""

    def __init__(self, service: KerberosService, host: str) -> None:
        self._service, self._host = service, host
        self._initiator: Initiator | None = None
        self._is_over = False

    def step(self, challenge: bytes | None) -> bytes | None:
        """Return the next message; may wait for the KDC."""
        if self._is_over:
            return None
        try:
            return self._step(challenge or b"")
        except GssError as error:
            raise BrokenExchange(f"{self._service.principal}: {error}") from None

    def _step(self, challenge: bytes) -> bytes:
        if self._initiator is None:
            service = self._service
            own = Credentials(service.principal, service.keytab, initiates=True)
            self._initiator = Initiator(own, service.name, self._host)
        if not self._initiator.is_complete:
            return self._initiator.step(challenge)
        offered = self._initiator.unwrap(challenge)
        if len(offered) != len(_OFFER) or not offered[0] & _NO_LAYER:
            raise BrokenExchange("the peer asks for a security layer")
        self._is_over = True
        return self._initiator.wrap(bytes([_NO_LAYER, 0, 0, 0]))
