from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from urteil.broker.security.oauth.json_web_tokens import (
    SignedValidator,
    UnsecuredValidator,
    unsecured_token,
)
from urteil.broker.security.oauth.jwks import KeySet, parse_keys
from urteil.broker.security.oauth.oauthbearer import (
    OAuthBearerExchange,
    OAuthBearerLogin,
    TokenRefused,
)
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange, Denied

NOW_S = 1_800_000_000
CLAIMS = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60, "scope": "read write"}


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def token(claims: Mapping[str, Any], header: Mapping[str, Any] | None = None) -> str:
    sections = (header or {"alg": "none"}, claims)
    return "".join(text(json.dumps(part).encode()) + "." for part in sections)


def unsecured(**options: str) -> UnsecuredValidator:
    named = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return UnsecuredValidator(named, lambda: NOW_S * 1000)


def first(of: str) -> bytes:
    return f"n,,\x01auth=Bearer {of}\x01\x01".encode()


def test_token_authenticates_until_it_expires() -> None:
    exchange = OAuthBearerExchange(unsecured())
    options = {"unsecuredLoginStringClaim_sub": "alice"}
    login = OAuthBearerLogin(unsecured_token(options, NOW_S * 1000))
    said = login.step(None)
    assert said is not None
    assert login.step(exchange.step(said)) is None
    assert exchange.is_complete
    assert str(exchange.principal) == "User:alice"
    assert exchange.expires_at_ms == (NOW_S + 3600) * 1000


@pytest.mark.parametrize(
    "claims",
    [
        {}, {"sub": "alice"}, {**CLAIMS, "exp": NOW_S}, {**CLAIMS, "exp": "soon"},
        {**CLAIMS, "iat": NOW_S + 30}, {**CLAIMS, "nbf": NOW_S + 1}, {**CLAIMS, "sub": ""},
        {**CLAIMS, "sub": 5}, {**CLAIMS, "exp": True}, {**CLAIMS, "iat": NOW_S + 61},
    ],
)  # fmt: skip
def test_invalid_token_is_rejected_in_two_steps(claims: dict[str, Any]) -> None:
    exchange = OAuthBearerExchange(unsecured())
    assert exchange.step(first(token(claims))) == b'{"status":"invalid_token"}'
    assert not exchange.is_complete
    with pytest.raises(Denied, match="invalid_token"):
        exchange.step(b"\x01")


@pytest.mark.parametrize("bad", ["a", "a.b", "a.b.c.d", "e30.e30.c2ln", "e30.!!.", "W10.W10."])
def test_malformed_token_is_rejected(bad: str) -> None:
    with pytest.raises(TokenRefused):
        unsecured().validate(bad)


def test_module_options_define_required_claims() -> None:
    assert unsecured(PrincipalClaimName="name").validate(
        token({**CLAIMS, "name": "bob"})
    ).subject == "bob"  # fmt: skip
    assert unsecured(AllowableClockSkewMs="5000").validate(token({**CLAIMS, "exp": NOW_S - 4}))
    assert unsecured(RequiredScope="write").validate(token(CLAIMS))
    exchange = OAuthBearerExchange(unsecured(RequiredScope="admin"))
    refusal = b'{"status":"insufficient_scope", "scope":"admin"}'
    assert exchange.step(first(token(CLAIMS))) == refusal


@pytest.mark.parametrize(
    "message",
    [
        b"", b"n,,", b"y,,\x01auth=Bearer a.b.\x01\x01", b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01host=x\x01\x01", b"n,,\x01\x01", b"n,,\x01auth=Bearer \xff\x01\x01", b"\x01",
    ],
)  # fmt: skip
def test_malformed_message_ends_the_exchange(message: bytes) -> None:
    with pytest.raises(BrokenExchange):
        OAuthBearerExchange(unsecured()).step(message)


def test_other_authorization_id_is_rejected() -> None:
    message = first(token(CLAIMS)).replace(b"n,,", b"n,a=bob,")
    with pytest.raises(Denied, match="different from the token's"):
        OAuthBearerExchange(unsecured()).step(message)
    assert OAuthBearerExchange(unsecured()).step(message.replace(b"bob", b"alice")) == b""


RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def number(value: int) -> str:
    return text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def key_set() -> str:
    of_rsa, of_ec = RSA.public_key().public_numbers(), EC.public_key().public_numbers()
    rsa_key = {"kty": "RSA", "kid": "one", "e": number(of_rsa.e), "n": number(of_rsa.n)}
    two = {"kty": "EC", "kid": "two", "crv": "P-256", "x": number(of_ec.x), "y": number(of_ec.y)}
    other = {"kty": "oct", "kid": "three", "k": "c2VjcmV0"}
    return json.dumps({"keys": [rsa_key, two, other]})


def signed(algorithm: str, kid: str, claims: Mapping[str, Any] = CLAIMS) -> str:
    said = token(claims, {"alg": algorithm, "kid": kid})[:-1]
    data, sha = said.encode(), hashes.SHA256()
    if algorithm == "RS256":
        signature = RSA.sign(data, padding.PKCS1v15(), sha)
    elif algorithm == "PS256":
        signature = RSA.sign(data, padding.PSS(padding.MGF1(sha), 32), sha)
    else:
        numbers = decode_dss_signature(EC.sign(data, ec.ECDSA(sha)))
        signature = b"".join(part.to_bytes(32, "big") for part in numbers)
    return f"{said}.{text(signature)}"


def validator(folder: Path, **more: Any) -> SignedValidator:
    file = folder / "keys.json"
    file.write_text(key_set())
    asked = {"skew_ms": 0, "subject_claim": "sub", "audiences": None, "issuer": None, **more}
    return SignedValidator(verify=KeySet(file).verify, now_ms=lambda: NOW_S * 1000, **asked)


@pytest.mark.parametrize(
    ("algorithm", "kid"), [("RS256", "one"), ("PS256", "one"), ("ES256", "two")]
)
def test_signed_token_is_accepted_and_a_changed_one_rejected(
    tmp_path: Path, algorithm: str, kid: str
) -> None:
    checks = validator(tmp_path)
    good = signed(algorithm, kid)
    assert checks.validate(good).subject == "alice"
    header, _, signature = good.split(".")
    forged = f"{header}.{text(json.dumps({**CLAIMS, 'sub': 'admin'}).encode())}.{signature}"
    for bad in (forged, token(CLAIMS), signed(algorithm, "nobody"), good[:-8]):
        with pytest.raises(TokenRefused):
            checks.validate(bad)


def test_symmetric_key_of_the_set_does_not_verify() -> None:
    assert [kid for kid, _ in parse_keys(key_set())] == ["one", "two"]
    for bad in ("", "[]", "{}", '{"keys": 5}'):
        with pytest.raises(ValueError, match=r"key set|Expecting"):
            parse_keys(bad)


def test_issuer_and_audience_must_match(tmp_path: Path) -> None:
    claims = {**CLAIMS, "iss": "here", "aud": ["brokers", "others"]}
    checks = validator(tmp_path, issuer="here", audiences=frozenset(["brokers"]))
    assert checks.validate(signed("RS256", "one", claims))
    for change in ({"iss": "there"}, {"aud": "others"}, {"iss": None}, {"aud": []}):
        with pytest.raises(TokenRefused):
            checks.validate(signed("RS256", "one", {**claims, **change}))


def test_replaced_key_set_is_read_again(tmp_path: Path) -> None:
    checks = validator(tmp_path)
    assert checks.validate(signed("RS256", "one"))
    (tmp_path / "keys.json").write_text('{"keys": []}')
    with pytest.raises(TokenRefused):
        checks.validate(signed("RS256", "one"))
    (tmp_path / "keys.json").write_text("half writ")
    with pytest.raises(TokenRefused):
        checks.validate(signed("RS256", "one"))
    (tmp_path / "keys.json").write_text(key_set())
    assert checks.validate(signed("RS256", "one"))
