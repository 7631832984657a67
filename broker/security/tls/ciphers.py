"""`ssl.cipher.suites`: IANA's names, as Java uses them, and those of OpenSSL."""

from __future__ import annotations

from collections.abc import Iterable

_NEWEST = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
_EXCHANGES = {"RSA": "", "ECDHE_RSA": "ECDHE-RSA", "ECDHE_ECDSA": "ECDHE-ECDSA",
              "DHE_RSA": "DHE-RSA", "DHE_DSS": "DHE-DSS", "ECDH_RSA": "ECDH-RSA",
              "ECDH_ECDSA": "ECDH-ECDSA"}  # fmt: skip


def openssl_ciphers(names: Iterable[str]) -> tuple[list[str], bool]:
    """Return OpenSSL's names of the suites before TLS 1.3, and whether TLS 1.3 is enabled. Raises
    ValueError.

    The TLS library cannot select among the three suites of TLS 1.3: all of them are enabled, or
    none.
    """
    names = list(names)
    newest = _NEWEST.intersection(names)
    if newest and newest != _NEWEST:
        missing = ", ".join(sorted(_NEWEST - newest))
        raise ValueError(
            f"ssl.cipher.suites: suites of TLS 1.3 are served all together; add {missing}"
        )
    return [_openssl_name(name) for name in names if name not in _NEWEST], bool(newest)


def _openssl_name(name: str) -> str:
    exchange, with_, rest = name.removeprefix("TLS_").partition("_WITH_")
    if not with_ or exchange not in _EXCHANGES:
        raise ValueError(f"ssl.cipher.suites: {name} is not known")
    cipher = rest.replace("AES_128_CBC", "AES128").replace("AES_256_CBC", "AES256")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305").replace("_", "-")
    return "-".join(filter(None, (_EXCHANGES[exchange], cipher)))
