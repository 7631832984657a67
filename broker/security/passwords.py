"""Encrypted passwords in ZooKeeper (`EncryptingPasswordEncoder` of Apache Kafka)."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from urteil.broker.security.aes import BLOCK, Aes

CIPHER = "AES/CBC/PKCS5Padding"
HASHES = {
    "PBKDF2WithHmacSHA1": "sha1", "PBKDF2WithHmacSHA224": "sha224",
    "PBKDF2WithHmacSHA256": "sha256", "PBKDF2WithHmacSHA384": "sha384",
    "PBKDF2WithHmacSHA512": "sha512",
}  # fmt: skip
KEY_FACTORY = "PBKDF2WithHmacSHA512"
SALT_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordEncoder:
    """An encoder by `password.encoder.*`. Each encoded password contains its parameters, so that
    passwords with other parameters but the same secret can be decoded."""

    secret: str
    key_factory: str = KEY_FACTORY
    cipher: str = CIPHER
    key_bits: int = 128
    iterations: int = 4096
    random_bytes: Callable[[int], bytes] = os.urandom

    def encode(self, password: str) -> str:
        """Encrypt. Raises ValueError with an unknown cipher or key factory."""
        salt, vector = self.random_bytes(SALT_BYTES), self.random_bytes(BLOCK)
        aes = self._aes(self.key_factory, self.cipher, salt, self.iterations, self.key_bits)
        pairs = {
            "keyFactoryAlgorithm": self.key_factory,
            "cipherAlgorithm": self.cipher,
            "keyLength": str(self.key_bits),
            "salt": _text(salt),
            "iterations": str(self.iterations),
            "encryptedPassword": _text(aes.encrypt(password.encode(), vector)),
            "passwordLength": str(_java_length(password)),
            "initializationVector": _text(vector),
        }
        return ",".join(f"{name}:{value}" for name, value in pairs.items())

    def decode(self, encoded: str) -> str:
        """Decrypt. Raises ValueError for a wrong secret or malformed data."""
        try:
            fields = dict(part.split(":", 1) for part in encoded.split(","))
            aes = self._aes(
                fields["keyFactoryAlgorithm"],
                fields["cipherAlgorithm"],
                base64.b64decode(fields["salt"]),
                int(fields["iterations"]),
                int(fields["keyLength"]),
            )
            data = base64.b64decode(fields["encryptedPassword"])
            vector = base64.b64decode(fields["initializationVector"])
            password = aes.decrypt(data, vector).decode()
        except KeyError as missing:
            raise ValueError(f"the encoded password has no {missing}") from None
        if _java_length(password) != int(fields["passwordLength"]):
            raise ValueError("Password could not be decoded, sanity check of length failed")
        return password

    def _aes(self, factory: str, cipher: str, salt: bytes, iterations: int, bits: int) -> Aes:
        if cipher != CIPHER:
            raise ValueError(f"password.encoder.cipher.algorithm {cipher} is not served: {CIPHER}")
        if factory not in HASHES:
            raise ValueError(
                f"password.encoder.keyfactory.algorithm {factory} is not known: one of "
                + ", ".join(HASHES)
            )
        secret = self.secret.encode()
        key = hashlib.pbkdf2_hmac(HASHES[factory], secret, salt, iterations, bits // 8)
        return Aes(key)


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
