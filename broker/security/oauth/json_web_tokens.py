"""JSON Web Tokens (RFC 7519): unsecured ones for tests, and ones signed by a key of a key set
(JWKS).

The required claims are Apache Kafka's: `OAuthBearerUnsecuredValidatorCallbackHandler` and
`OAuthBearerValidatorCallbackHandler`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from urteil.broker.security.oauth.oauthbearer import Token, TokenRefused

_UNSECURED = "unsecured"


@dataclass(frozen=True, slots=True)
class UnsecuredValidator:
    """Validates unsecured tokens by the options `unsecuredValidator...`. For tests only: such
    tokens prove nothing."""

    options: Mapping[str, str]
    now_ms: Callable[[], float]

    def validate(self, token: str) -> Token:
        header, claims, _, signature = parse(token)
        if signature or header.get("alg") != "none":
            raise TokenRefused("Unsecured JWS with a signature or an algorithm")
        option = self._option
        skew_ms = int(option("AllowableClockSkewMs") or "0")
        timely_token = _timely(
            claims, self.now_ms(), skew_ms, option("PrincipalClaimName") or "sub"
        )
        required = option("RequiredScope")
        scopes = _scopes(claims.get(option("ScopeClaimName") or "scope"))
        if required and not set(required.split()) <= set(scopes):
            raise TokenRefused("a scope is missing", required)
        return timely_token

    def _option(self, name: str) -> str:
        return self.options.get(f"{_UNSECURED}Validator{name}", "").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedValidator:
    """Validates signed tokens. `verify` takes header, signed bytes and signature, and raises
    TokenRefused."""

    verify: Callable[[Mapping[str, Any], bytes, bytes], None]
    now_ms: Callable[[], float]
    skew_ms: int
    subject_claim: str
    audiences: Collection[str] | None
    issuer: str | None

    def validate(self, token: str) -> Token:
        header, claims, signed, signature = parse(token)
        self.verify(header, signed, signature)
        timely_token = _timely(claims, self.now_ms(), self.skew_ms, self.subject_claim)
        if "iat" not in claims:
            raise TokenRefused("no iat")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenRefused("another issuer")
        audience = claims.get("aud", [])
        of = [audience] if isinstance(audience, str) else audience
        if self.audiences is not None and not set(self.audiences) & set(of):
            raise TokenRefused("another audience")
        return timely_token


def parse(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Return header, claims, signed bytes and signature. Raises TokenRefused."""
    pieces = token.split(".")
    if len(pieces) != 3:
        raise TokenRefused("a token has three parts")
    try:
        header, claims = (json.loads(_decode_base64(part)) for part in pieces[:2])
        signature = _decode_base64(pieces[2])
    except (ValueError, RecursionError):
        raise TokenRefused("a part of the token cannot be read") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise TokenRefused("a part of the token is not an object")
    return header, claims, f"{pieces[0]}.{pieces[1]}".encode(), signature


def unsecured_token(options: Mapping[str, str], now_ms: float) -> str:
    """Return a token as `OAuthBearerLoginModule` builds it from `unsecuredLogin...` options."""
    claims: dict[str, Any] = {
        name.rpartition("Claim_")[2]: value
        for name, value in options.items()
        if name.startswith(f"{_UNSECURED}LoginStringClaim_")
    }
    lifetime_s = int(options.get(f"{_UNSECURED}LoginLifetimeSeconds", "3600"))
    claims |= {"iat": now_ms / 1000, "exp": now_ms / 1000 + lifetime_s}
    pieces = ({"alg": "none"}, claims)
    return "".join(_encode_base64(json.dumps(part).encode()) + "." for part in pieces)


def _timely(claims: Mapping[str, Any], now_ms: float, skew_ms: int, subject_claim: str) -> Token:
    expires, since, issued = (_time_ms(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is None:
        raise TokenRefused("no exp")
    if now_ms - skew_ms >= expires:
        raise TokenRefused("the token has expired")
    if since is not None and now_ms + skew_ms < since:
        raise TokenRefused("the token does not begin yet")
    if issued is not None and (now_ms + skew_ms < issued or issued > expires):
        raise TokenRefused("the token is not issued yet")
    subject = claims.get(subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRefused(f"no {subject_claim}")
    return Token(subject, expires)


def _time_ms(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TokenRefused(f"{name} is not a time")
    return value * 1000


def _scopes(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [scope for scope in value if isinstance(scope, str)] if isinstance(value, list) else []


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
