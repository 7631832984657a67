"""A key set (RFC 7517) that verifies tokens, read from a file."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from urteil.broker.security.oauth.oauthbearer import TokenRefused

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
Keys = list[tuple[str | None, PublicKey]]
"""Keys with their ids in the set."""
_HASHES: Mapping[str, Callable[[], hashes.HashAlgorithm]] = {
    "256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512,
}  # fmt: skip
_CURVES: Mapping[str, Callable[[], ec.EllipticCurve]] = {
    "P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1,
}  # fmt: skip


class KeySet:
    """The keys of a file, read again after a change. Raises ValueError at the first read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._read_if_changed()
        self._keys = parse_keys(path.read_text(encoding="utf-8"))

    def verify(self, header: Mapping[str, Any], signed: bytes, signature: bytes) -> None:
        """Raise TokenRefused unless a key of the set (the named one, if the header names one) made
        the signature."""
        self._refresh()
        check_signature(self._keys, header, signed, signature)

    def _refresh(self) -> None:
        stamp = self._read_if_changed()
        if stamp is None or stamp == self._stamp:
            return
        try:
            self._keys = parse_keys(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return  # half written: keep the old keys until the file can be read
        self._stamp = stamp

    def _read_if_changed(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size


def check_signature(keys: Keys, header: Mapping[str, Any], signed: bytes, signature: bytes) -> None:
    """Raise TokenRefused unless a key of the set (the named one, if the header names one) made the
    signature."""
    named = header.get("kid")
    meant = [key for kid, key in keys if named is None or kid == named]
    if not any(_has_signed(key, str(header.get("alg")), signed, signature) for key in meant):
        raise TokenRefused("no key of the set signed the token")


def parse_keys(text: str) -> Keys:
    """Return the keys that verify signatures, with their ids; skip others. Raises ValueError for a
    malformed set."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("no key set: too deep") from None
    if not isinstance(value, dict) or not isinstance(value.get("keys"), list):
        raise ValueError('no key set: {"keys": [...]}')
    keys = [(key.get("kid"), _key(key)) for key in value["keys"] if isinstance(key, dict)]
    return [(kid, key) for kid, key in keys if key is not None]


def _key(value: Mapping[str, Any]) -> PublicKey | None:
    if value.get("use", "sig") != "sig":
        return None
    if value.get("kty") == "RSA":
        return rsa.RSAPublicNumbers(_number(value, "e"), _number(value, "n")).public_key()
    if value.get("kty") == "EC" and (name := str(value.get("crv"))) in _CURVES:
        curve = _CURVES[name]()
        return ec.EllipticCurvePublicNumbers(
            _number(value, "x"), _number(value, "y"), curve
        ).public_key()
    return None


def _number(value: Mapping[str, Any], name: str) -> int:
    text = str(value.get(name, ""))
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def _has_signed(key: PublicKey, algorithm: str, signed: bytes, signature: bytes) -> bool:
    kind, size = algorithm[:2], algorithm[2:]
    if size not in _HASHES:
        return False
    name = _HASHES[size]()
    try:
        if isinstance(key, rsa.RSAPublicKey) and kind == "RS":
            key.verify(signature, signed, padding.PKCS1v15(), name)
        elif isinstance(key, rsa.RSAPublicKey) and kind == "PS":
            pss = padding.PSS(padding.MGF1(name), padding.PSS.DIGEST_LENGTH)
            key.verify(signature, signed, pss, name)
        elif isinstance(key, ec.EllipticCurvePublicKey) and kind == "ES":
            half = len(signature) // 2
            numbers = (int.from_bytes(part, "big") for part in (signature[:half], signature[half:]))
            key.verify(encode_dss_signature(*numbers), signed, ec.ECDSA(name))
        else:
            return False
    except InvalidSignature:
        return False
    return True
